/**
 * Checks AWS signatures of version 4, written from Amazon's description ("Signature Calculations for the Authorization Header") and
 * tested with its examples. It shares no code with Posthorn or its libraries.
 */
import { createHash, createHmac } from 'node:crypto';

export interface S3Account {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
  /** The account is temporary: requests must have this token. */
  readonly sessionToken?: string;
}

export interface SignedRequest {
  readonly method: string;
  /** Path and query, as they were received. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Amazon's code of the error. Null: the signature is right. */
export type SignatureProblem =
  | 'AccessDenied'
  | 'AuthorizationHeaderMalformed'
  | 'InvalidAccessKeyId'
  | 'InvalidToken'
  | 'RequestTimeTooSkewed'
  | 'SignatureDoesNotMatch'
  | null;

const MAX_SKEW_MS = 15 * 60_000;
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const encode = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', '%20'));

function canonicalQuery(query: string): string {
  if (query === '') return '';
  return query
    .split('&')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return `${encode(decode(name))}=${encode(decode(value.join('=')))}`;
    })
    .sort()
    .join('&');
}

function canonicalRequest({ method, target, headers }: SignedRequest, signed: readonly string[]): string {
  const [path = '', ...query] = target.split('?');
  return [
    method,
    path
      .split('/')
      .map((segment) => encode(decodeURIComponent(segment)))
      .join('/'),
    canonicalQuery(query.join('?')),
    ...signed.map(
      (name) =>
        `${name}:${String(headers[name] ?? '')
          .trim()
          .replace(/ +/g, ' ')}`,
    ),
    '',
    signed.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n');
}

export function checkSignature(
  request: SignedRequest,
  { accessKeyId, secretAccessKey, region, sessionToken }: S3Account,
  now: Date,
): SignatureProblem {
  const { headers } = request;
  const given = AUTHORIZATION.exec(String(headers.authorization ?? ''));
  if (given === null)
    return headers.authorization === undefined ? 'AccessDenied' : 'AuthorizationHeaderMalformed';
  const [, key, date, givenRegion, names, signature] = given as unknown as [string, ...string[]];
  if (key !== accessKeyId) return 'InvalidAccessKeyId';
  if (headers['x-amz-security-token'] !== sessionToken) return 'InvalidToken';
  if (givenRegion !== region) return 'AuthorizationHeaderMalformed';
  const time = String(headers['x-amz-date'] ?? '');
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(at) || !time.startsWith(date!)) return 'AccessDenied';
  if (Math.abs(now.getTime() - at) > MAX_SKEW_MS) return 'RequestTimeTooSkewed';
  const signed = names!.split(';');
  const mustBeSigned = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))];
  if (!mustBeSigned.every((name) => signed.includes(name))) return 'AccessDenied';
  const toSign = [
    'AWS4-HMAC-SHA256',
    time,
    `${date}/${region}/s3/aws4_request`,
    createHash('sha256').update(canonicalRequest(request, signed)).digest('hex'),
  ].join('\n');
  const signingKey = ['s3', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${secretAccessKey}`, date!), region));
  return hmac(signingKey, toSign).toString('hex') === signature ? null : 'SignatureDoesNotMatch';
}
