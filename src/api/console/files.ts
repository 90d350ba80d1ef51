/** The files of the built console, read and compressed once and kept in memory. */
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

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

/** The folder of the console: beside the compiled program, or in `dist` when Posthorn runs from its sources. */
export function findConsole(): string | null {
  for (const place of ['../../console/', '../../../dist/console/']) {
    const directory = fileURLToPath(new URL(place, import.meta.url));
    if (existsSync(path.join(directory, INDEX))) return directory;
  }
  return null;
}

export async function loadConsole(directory: string): Promise<ConsoleFiles> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return new Map(
    await Promise.all(
      files.map(async (entry): Promise<[string, ConsoleFile]> => {
        const file = path.join(entry.parentPath, entry.name);
        const name = path.relative(directory, file).replaceAll(path.sep, '/');
        return [name, await toFile(name, await readFile(file))];
      }),
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
