/** The files of the built console, read and compressed once and kept in memory. */
import { hash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { readPackagedFolder } from '../../config/index.ts';

export interface ConsoleFile {
  readonly contentType: string;
  readonly body: Buffer;
  /** Null if compression does not make it smaller. */
  readonly gzipped: Buffer | null;
  readonly etag: string;
}

export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

export const INDEX = 'index.html';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** Null if the console has not been built. */
export async function loadConsole(): Promise<ConsoleFiles | null> {
  const files = await readPackagedFolder('console');
  if (files?.get(INDEX) === undefined) return null;
  return new Map(
    await Promise.all(
      [...files].map(
        async ([name, body]): Promise<[string, ConsoleFile]> => [name, await toFile(name, body)],
      ),
    ),
  );
}

async function toFile(name: string, body: Buffer): Promise<ConsoleFile> {
  const gzipped = await promisify(gzip)(body, { level: 9 });
  return {
    contentType: CONTENT_TYPES[path.extname(name)] ?? 'application/octet-stream',
    body,
    gzipped: gzipped.length < body.length ? gzipped : null,
    etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"`,
  };
}
