/** Checks a client certificate when it is set, so that a mistake does not show up as failed deliveries. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { TlsConfig } from '../domain/endpoint-auth.ts';
import type { FieldError } from '../domain/problem.ts';
import { REDACTED } from './redacted.ts';

/** Each handshake signs with the key, and a key of 16,384 bits would stop the process for a second. */
const MAX_KEY_BITS = 4096;
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** All certificates of a PEM text. Null: it contains none, or something else as well. */
function certificatesIn(pem: string): X509Certificate[] | null {
  const blocks = pem.match(BLOCK);
  // Comments between the blocks are allowed, other kinds of blocks are not.
  if (blocks === null || pem.replaceAll(BLOCK, '').includes('-----')) return null;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return null;
  }
}

const error = (field: keyof TlsConfig, message: string): FieldError => ({ path: `tls.${field}`, message });

/** The first error, or null if the certificate can be used. */
export function findCertificateError({ cert, key, ca }: TlsConfig, now: number): FieldError | null {
  // Only tls.key is stored encrypted.
  if (cert.includes('PRIVATE KEY')) return error('cert', 'contains a private key: move it to "tls.key"');
  if (ca?.includes('PRIVATE KEY')) return error('ca', 'contains a private key: remove it');
  const chain = certificatesIn(cert);
  if (chain === null) return error('cert', 'must be one or more certificates in PEM');
  if (ca !== undefined && certificatesIn(ca) === null)
    return error('ca', 'must be one or more certificates in PEM');
  // The stored key is kept, with the certificate that it was checked against.
  if (key === undefined) return null;
  if (key === REDACTED)
    return error('key', 'is redacted: send the key itself, or leave "tls" out to keep what is stored');
  if (/BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(key))
    return error('key', 'is encrypted: send it without a passphrase');
  const [own] = chain;
  const privateKey = readKey(key);
  if (privateKey === null) return error('key', 'must be a private key in PEM');
  if ((privateKey.asymmetricKeyDetails?.modulusLength ?? 0) > MAX_KEY_BITS)
    return error('key', `is too long: an RSA key may have at most ${MAX_KEY_BITS} bits`);
  if (!own!.checkPrivateKey(privateKey)) return error('key', 'is not the key of "tls.cert"');
  if (own!.validToDate.getTime() <= now) return error('cert', `expired at ${own!.validToDate.toISOString()}`);
  try {
    createSecureContext({ cert, key, ...(ca !== undefined && { ca }) });
    return null;
  } catch {
    return error('cert', 'is not accepted by the TLS library: its key or digest may be too weak');
  }
}

function readKey(pem: string) {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}
