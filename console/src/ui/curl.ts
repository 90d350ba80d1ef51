const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
/** curl sets these itself. */
const OWN_HEADERS = new Set(['host', 'content-length', 'connection', 'transfer-encoding']);

export interface SentRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The request as a command for a POSIX shell. Headers that the API redacts stay redacted. */
export function toCurl({ url, headers, body }: SentRequest): string {
  const lines = Object.entries(headers)
    .filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()))
    .map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
  return [`curl -X POST ${quote(url)}`, ...lines, `--data-binary ${quote(body)}`].join(' \\\n  ');
}
