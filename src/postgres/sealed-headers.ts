/**
 * Headers that authenticate Posthorn to a receiver are secrets: they are sealed in the endpoint's configuration, and
 * opened to send.
 */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { openValue, sealValue } from './sealed-value.ts';
import type { SecretBox } from './secret-box.ts';

/** Bound to the endpoint and to the name: a ciphertext moved elsewhere does not open. */
export const headerOwner = (id: Uuid, name: string): string => `${id} header ${name.toLowerCase()}`;

/** Moves the headers that are secret from `headers` to `sealed_headers`. */
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
    sealed_headers[name] = sealValue(headers[name]!, headerOwner(id, name), box);
    delete headers[name];
  }
  const { headers: _all, ...rest } = config;
  return { ...rest, ...(Object.keys(headers).length > 0 && { headers }), sealed_headers };
}

/** Returns the configuration with every header in plain text. It must stay in memory. */
export function openHeaders(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  if (config.sealed_headers === undefined) return config;
  const headers = { ...config.headers };
  for (const [name, sealed] of Object.entries(config.sealed_headers))
    headers[name] = openValue(sealed, headerOwner(id, name), box);
  return { ...config, headers };
}
