/** Everything secret in an endpoint's configuration: headers that are credentials, and what `auth` and `tls` hold. */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { openHeaders, sealHeaders } from './sealed-headers.ts';
import { openSettings, sealSettings } from './sealed-settings.ts';
import type { SecretBox } from './secret-box.ts';

/** As it is stored. `isSecret` judges names of headers. */
export function sealConfig(
  config: EndpointConfig,
  id: Uuid,
  box: SecretBox,
  isSecret: (name: string) => boolean,
): EndpointConfig {
  return sealSettings(sealHeaders(config, id, box, isSecret), id, box);
}

/** In plain text: for memory only. */
export function openConfig(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  return openSettings(openHeaders(config, id, box), id, box);
}

/** What is left if nothing sealed can be opened. Not for sending with. */
export function withoutSecrets(config: EndpointConfig): EndpointConfig {
  const { sealed_headers: _headers, sealed_settings: _settings, ...rest } = config;
  return rest;
}
