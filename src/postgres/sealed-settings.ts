/**
 * The secrets of `auth` and `tls`, one each: they are sealed in `sealed_settings` of the configuration, and opened to
 * send. So is the URL of a notifier: whoever knows its path can post to the chat, or it is the e-mail address of a person.
 */
import { authSecrets } from '../domain/endpoint-auth.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { openValue, sealValue } from './sealed-value.ts';
import type { SecretBox } from './secret-box.ts';

/** Bound to the endpoint and to the setting: a ciphertext moved elsewhere does not open. */
export const settingOwner = (id: Uuid, setting: string): string => `${id} ${setting}`;

/** Moves both secrets to `sealed_settings`. Secrets that are already there stay. */
export function sealSettings(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  const { auth, tls } = config;
  const sealed = { ...config.sealed_settings };
  const after = { ...config };
  if (auth !== undefined) {
    const { [authSecrets[auth.type]]: secret, ...shown } = auth;
    if (secret !== undefined) sealed.auth = sealValue(secret, settingOwner(id, 'auth'), box);
    after.auth = shown;
  }
  if (tls !== undefined) {
    const { key, ...shown } = tls;
    if (key !== undefined) sealed.tls = sealValue(key, settingOwner(id, 'tls'), box);
    after.tls = shown;
  }
  return Object.keys(sealed).length === 0 ? after : { ...after, sealed_settings: sealed };
}

/** Returns the configuration with both secrets in plain text. It must stay in memory. */
export function openSettings(config: EndpointConfig, id: Uuid, box: SecretBox): EndpointConfig {
  const { auth, tls, sealed_settings: sealed } = config;
  if (sealed === undefined) return config;
  const open = { ...config };
  if (auth !== undefined && sealed.auth !== undefined)
    open.auth = { ...auth, [authSecrets[auth.type]]: openValue(sealed.auth, settingOwner(id, 'auth'), box) };
  if (tls !== undefined && sealed.tls !== undefined)
    open.tls = { ...tls, key: openValue(sealed.tls, settingOwner(id, 'tls'), box) };
  return open;
}

/** Adds the URL of a notifier. The column `url` has only what everybody may see. */
export function sealUrl(config: EndpointConfig, url: string, id: Uuid, box: SecretBox): EndpointConfig {
  const sealed = sealValue(url, settingOwner(id, 'url'), box);
  return { ...config, sealed_settings: { ...config.sealed_settings, url: sealed } };
}

/** Returns the URL that requests go to. */
export function openUrl(
  { id, url, config }: { readonly id: Uuid; readonly url: string; readonly config: EndpointConfig },
  box: SecretBox,
): string {
  const sealed = config.sealed_settings?.url;
  return sealed === undefined ? url : openValue(sealed, settingOwner(id, 'url'), box);
}
