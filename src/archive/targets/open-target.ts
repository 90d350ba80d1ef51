import { fileURLToPath } from 'node:url';
import { ArchiveError } from '../../domain/archive.ts';
import { FileTarget } from './file-target.ts';
import { S3Target } from './s3-target.ts';
import type { ArchiveTarget } from './target.ts';

export interface TargetOptions {
  /** Null: true if the endpoint is not Amazon's. */
  readonly pathStyle?: boolean | null;
  /** Where the variables of AWS are. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Opens the archive of `POSTHORN_ARCHIVE_URL`. Throws if the URL is not valid, or a variable of AWS is missing. */
export function openTarget(url: string, options: TargetOptions = {}): ArchiveTarget {
  const parsed = URL.parse(url);
  if (parsed?.protocol === 'file:') {
    if (parsed.host !== '')
      throw new ArchiveError(
        `POSTHORN_ARCHIVE_URL (${url}) names the host "${parsed.host}". Use three slashes: file:///…`,
      );
    return new FileTarget(url, fileURLToPath(parsed));
  }
  if (parsed?.protocol === 's3:' && parsed.hostname !== '') return openBucket(url, parsed, options);
  throw new ArchiveError(
    `POSTHORN_ARCHIVE_URL (${url}) is not valid. Allowed: file:///directory or s3://bucket/prefix.`,
  );
}

function openBucket(
  url: string,
  { hostname, pathname }: URL,
  { pathStyle = null, env = process.env }: TargetOptions,
): S3Target {
  const accessKeyId = env.AWS_ACCESS_KEY_ID ?? '';
  const secretAccessKey = env.AWS_SECRET_ACCESS_KEY ?? '';
  if (accessKeyId === '' || secretAccessKey === '')
    throw new ArchiveError(`The archive ${url} needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`);
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || null;
  if (endpoint !== null && !URL.canParse(endpoint))
    throw new ArchiveError(`AWS_ENDPOINT_URL (${endpoint}) is not a URL.`);
  return new S3Target({
    url,
    bucket: hostname,
    prefix: decodeURIComponent(pathname).replace(/^\/+|\/+$/g, ''),
    endpoint,
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1',
    pathStyle: pathStyle ?? endpoint !== null,
    accessKeyId,
    secretAccessKey,
    sessionToken: env.AWS_SESSION_TOKEN || undefined,
  });
}
