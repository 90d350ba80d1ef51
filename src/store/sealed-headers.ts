/** Headers of an endpoint that prove who is asking are secrets too: sealed in its configuration, opened to send. */
import type { EndpointConfig, SealedHeader } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import type { SecretBox } from './secret-box.ts';

/** Bound to the endpoint and to the name: a ciphertext moved elsewhere does not open. */
const belongsTo = (id: Uuid, name: string): string => `${id} header ${name.toLowerCase()}`;

/** Takes the headers that `isSecret` names out of the plain ones. */
export function sealHeaders(
  config: EndpointConfig,
  id: Uuid,
  box: SecretBox,
  isSecret: (name: string) => boolean,
): EndpointConfig {
  const secret = Object.keys(config.headers ?? {}).filter((name) => isSecret(name.toLowerCase()));
  if (secret.length === 0) return config;
  const headers = { ...config.headers };
  const sealed_headers = { ...config.sealed_headers };
  for (const name of secret) {
    sealed_headers[name] = sealHeader(headers[name]!, id, name, box);
    delete headers[name];
  }
  const { headers: _all, ...rest } = config;
  return { ...rest, ...(Object.keys(headers).length > 0 && { headers }), sealed_headers };
}

export function sealHeader(value: string, id: Uuid, name: string, box: SecretBox): SealedHeader {
  const { keyId, ciphertext } = box.seal(value, belongsTo(id, name));
  return { key_id: keyId, ciphertext: ciphertext.toString('base64') };
}

export function openHeader(sealed: SealedHeader, id: Uuid, name: string, box: SecretBox): string {
  const ciphertext = Buffer.from(sealed.ciphertext, 'base64');
  return box.open({ keyId: sealed.key_id, ciphertext }, belongsTo(id, name));
}

/** The configuration with every header in plain text: for memory only. */
export function openHeaders(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  if (config.sealed_headers === undefined) return config;
  const headers = { ...config.headers };
  for (const [name, sealed] of Object.entries(config.sealed_headers))
    headers[name] = openHeader(sealed, id, name, box);
  return { ...config, headers };
}
