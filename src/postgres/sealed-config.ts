/** The secrets in an endpoint's configuration: its headers, and those of `auth` and `tls`. */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { openHeaders, sealHeaders } from './sealed-headers.ts';
import { openSettings, sealSettings } from './sealed-settings.ts';
import type { SecretBox } from './secret-box.ts';

/** Returns the configuration as it is stored. */
export function sealConfig(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  return sealSettings(sealHeaders(config, id, box), id, box);
}

/** Returns the configuration with its secrets in plain text. It must stay in memory. */
export function openConfig(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  return openSettings(openHeaders(config, id, box), id, box);
}

/** Returns the configuration without its secrets. It must not be used to send requests. */
export function withoutSecrets(config: EndpointConfig): EndpointConfig {
  const { sealed_headers: _headers, sealed_settings: _settings, ...rest } = config;
  return rest;
}
