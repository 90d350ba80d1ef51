/** A small app that fails on request, and a database that only notes when it is started and stopped. */
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RunnableConfig, RunningApp } from '../app.ts';

/** Appends a line to the file of notes, which shows the order of events over all processes. */
function note(what: string): void {
  if (process.env.TEST_NOTES) appendFileSync(process.env.TEST_NOTES, `${what}\n`);
}

/** Notes the role of a process, for tests that need it. */
function noteRole(what: string): void {
  if (process.env.TEST_NOTE_ROLES) note(what);
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const stopMs = Number(process.env.TEST_STOP_MS ?? 0);

export async function startApp({
  config,
  listens = true,
}: {
  config: RunnableConfig;
  listens?: boolean;
}): Promise<RunningApp> {
  await sleep(Number(process.env.TEST_START_MS ?? 0));
  if (process.env.TEST_START_ERROR) throw new Error(process.env.TEST_START_ERROR);
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      if (request.url === '/throw') setTimeout(() => misbehave('thrown on request'));
      if (request.url === '/reject') void Promise.reject(new Error('rejected on request'));
      const { authorization, 'content-type': type } = request.headers;
      response.setHeader('connection', 'close');
      response.end(
        JSON.stringify({
          pid: process.pid,
          method: request.method,
          url: request.url,
          authorization,
          type,
          body,
        }),
      );
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (listens) server.listen(config.port, config.host, resolve);
    else resolve();
  });
  note(`app started on ${config.databaseUrl}`);
  noteRole(`${process.pid} is ${config.role}${listens ? '' : ', and does not listen'}`);
  return {
    url: `http://${config.host}:${config.port}`,
    readMetrics: () => [],
    async stop() {
      note('app stopping');
      noteRole(`${config.role} stops`);
      await new Promise((resolve) => server.close(resolve));
      await sleep(stopMs);
      note('app stopped');
      noteRole(`${config.role} has stopped`);
    },
  };
}

function misbehave(message: string): never {
  throw new Error(message);
}

export async function startEmbeddedPostgres({ dataDir }: { dataDir: string }) {
  note('database started');
  return {
    connectionString: 'postgres://stand-in/database',
    dataDir,
    stop: async () => note('database stopped'),
  };
}

export async function migrate(): Promise<string[]> {
  note('migrated');
  return [];
}
