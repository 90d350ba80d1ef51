import { styleText } from 'node:util';

/** What `posthorn dev` prints: where the server is, and commands to paste into a shell. */
export interface BannerFacts {
  readonly version: string;
  readonly url: string;
  readonly adminKey: string;
}

const RECEIVER_PORT = 9000;
/** A receiver in one line that needs no installation: it prints each request and answers 200. */
const RECEIVER = `node -e "require('http').createServer((q,s)=>{let b='';q.on('data',d=>b+=d).on('end',()=>{console.log(q.headers['webhook-id'],b);s.end()})}).listen(${RECEIVER_PORT})"`;

export function devBanner({ version, url, adminKey }: BannerFacts): string {
  const strong = (text: string): string => styleText('bold', text, { stream: process.stdout });
  const caution = (text: string): string => styleText('yellow', text, { stream: process.stdout });
  const post = (path: string, body: unknown): string =>
    `curl -s ${url}${path} -H ${quote(`authorization: Bearer ${adminKey}`)} -H 'content-type: application/json' -d ${quote(JSON.stringify(body))}`;
  return `
  ${strong(`Posthorn ${version}`)} is running.

  API        ${url}/v1
  Console    ${strong(`${url}/console`)}
  Admin key  ${adminKey}

  ${caution('Development mode: http:// and receivers on this machine are allowed. For production: npx posthorn serve')}

  See a webhook arrive. In a second terminal, start a receiver:

    ${RECEIVER}

  In a third one, register it and post an event:

    ${post('/v1/endpoints', { url: `http://127.0.0.1:${RECEIVER_PORT}/` })}
    ${post('/v1/events', { type: 'order.created', data: { order: 42 } })}
`;
}

export function serveLine(version: string, role: string, url: string): string {
  return role === 'worker'
    ? `Posthorn ${version} is running as a worker.`
    : `Posthorn ${version} is running (role ${role}): API ${url}/v1, console ${url}/console`;
}

/** Quotes a word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
