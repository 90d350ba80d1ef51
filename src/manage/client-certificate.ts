/** Whether a client certificate can be used, found out when it is given rather than when nothing arrives. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { REDACTED } from '../api/endpoints/auth-schema.ts';
import type { TlsConfig } from '../domain/endpoint-auth.ts';
import type { FieldError } from '../domain/problem.ts';

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** All the certificates in a PEM, or null if it is anything else. */
function certificatesIn(pem: string): X509Certificate[] | null {
  const blocks = pem.match(BLOCK);
  // What is left of it may be remarks, but no other blocks.
  if (blocks === null || pem.replaceAll(BLOCK, '').includes('-----')) return null;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return null;
  }
}

const error = (field: keyof TlsConfig, message: string): FieldError => ({ path: `tls.${field}`, message });

/** The first thing that is wrong, or null. */
export function certificateError({ cert, key, ca }: TlsConfig, now: number): FieldError | null {
  // Only the key is kept as a secret.
  if (cert.includes('PRIVATE KEY')) return error('cert', 'contains a private key: that goes into tls.key');
  if (ca?.includes('PRIVATE KEY')) return error('ca', 'contains a private key: leave it out');
  const chain = certificatesIn(cert);
  if (chain === null) return error('cert', 'must be one or more certificates in PEM');
  if (ca !== undefined && certificatesIn(ca) === null)
    return error('ca', 'must be one or more certificates in PEM');
  if (key === REDACTED)
    return error('key', 'is redacted: give the key itself, or leave tls out to keep it as it is');
  if (/BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(key ?? ''))
    return error('key', 'is encrypted: give it without a passphrase');
  const [own] = chain;
  const privateKey = readKey(key!);
  if (privateKey === null) return error('key', 'must be a private key in PEM');
  if (!own!.checkPrivateKey(privateKey)) return error('key', 'does not belong to tls.cert');
  if (own!.validToDate.getTime() <= now) return error('cert', `expired at ${own!.validToDate.toISOString()}`);
  try {
    createSecureContext({ cert, key: key!, ...(ca !== undefined && { ca }) });
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
