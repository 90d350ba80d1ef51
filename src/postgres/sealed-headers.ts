/**
 * Custom headers of an endpoint are sealed in its configuration, and opened to send. All headers are sealed: the name of a
 * header does not tell whether its value is secret.
 */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { openValue, sealValue } from './sealed-value.ts';
import type { SecretBox } from './secret-box.ts';

/** Bound to the endpoint and to the name: a ciphertext moved elsewhere does not open. */
export const headerOwner = (id: Uuid, name: string): string => `${id} header ${name.toLowerCase()}`;

/** Moves all of `headers` to `sealed_headers`. */
export function sealHeaders(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  const { headers, ...rest } = config;
  if (headers === undefined) return config;
  const sealed_headers = { ...config.sealed_headers };
  for (const [name, value] of Object.entries(headers))
    sealed_headers[name] = sealValue(value, headerOwner(id, name), box);
  return Object.keys(sealed_headers).length === 0 ? rest : { ...rest, sealed_headers };
}

/** Returns the configuration with every header in plain text. It must stay in memory. */
export function openHeaders(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  if (config.sealed_headers === undefined) return config;
  const headers = { ...config.headers };
  for (const [name, sealed] of Object.entries(config.sealed_headers))
    headers[name] = openValue(sealed, headerOwner(id, name), box);
  return { ...config, headers };
}
