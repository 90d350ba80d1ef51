/** Files of the console and the guide, read and compressed once and kept in memory. */
import { hash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type PackagedFolder, readPackagedFolder } from '../../config/index.ts';
import { matchesEtag } from './etag.ts';

export interface StaticFile {
  readonly contentType: string;
  readonly body: Buffer;
  /** Null if compression does not make it smaller. */
  readonly gzipped: Buffer | null;
  readonly etag: string;
}

export type StaticFiles = ReadonlyMap<string, StaticFile>;

export const INDEX = 'index.html';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json; charset=utf-8',
};

/**
 * Returns a function that reads the files at its first call. Its result is null if the folder has not been built; then
 * the next call looks again.
 */
export function createFileLoader(folder: PackagedFolder): () => Promise<StaticFiles | null> {
  let files: StaticFiles | null = null;
  return async () => {
    files ??= await loadFiles(folder);
    return files;
  };
}

/** Null if the folder has not been built. */
async function loadFiles(folder: PackagedFolder): Promise<StaticFiles | null> {
  const files = await readPackagedFolder(folder);
  if (files?.get(INDEX) === undefined) return null;
  return new Map(
    await Promise.all(
      [...files].map(async ([name, body]): Promise<[string, StaticFile]> => [name, await toFile(name, body)]),
    ),
  );
}

async function toFile(name: string, body: Buffer): Promise<StaticFile> {
  const gzipped = await promisify(gzip)(body, { level: 9 });
  return {
    contentType: CONTENT_TYPES[path.extname(name)] ?? 'application/octet-stream',
    body,
    gzipped: gzipped.length < body.length ? gzipped : null,
    etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"`,
  };
}

/** Answers with the file, or with 304 if the client has it. */
export function sendFile(request: FastifyRequest, reply: FastifyReply, file: StaticFile): FastifyReply {
  void reply.headers({ etag: file.etag, vary: 'accept-encoding', 'content-type': file.contentType });
  if (matchesEtag(request.headers['if-none-match'], file.etag)) return reply.code(304).send();
  const accepted = request.headers['accept-encoding'] ?? '';
  if (file.gzipped === null || !/\bgzip\b/.test(String(accepted))) return reply.send(file.body);
  return reply.header('content-encoding', 'gzip').send(file.gzipped);
}
