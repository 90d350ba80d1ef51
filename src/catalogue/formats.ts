/**
 * The values of `format` that are checked. Each check takes time linear in the length of the text. Other formats are
 * annotations, as JSON Schema allows.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { isVersionDate } from '../domain/event-type-version.ts';
import { parseTime } from '../domain/time.ts';

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,12})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const UUID = /^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/;
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]{0,63}:/;
const SPACE = /[\s<>"{}|\\^`]/;
const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const MAIL_NAME = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}$/;

function isHostname(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => LABEL.test(label));
}

function isEmail(text: string): boolean {
  if (text.length > 320) return false;
  const at = text.lastIndexOf('@');
  const name = text.slice(0, at);
  if (at < 1 || !MAIL_NAME.test(name) || name.startsWith('.') || name.endsWith('.')) return false;
  return !name.includes('..') && isHostname(text.slice(at + 1));
}

function isUri(text: string): boolean {
  return SCHEME.test(text.slice(0, 80)) && !SPACE.test(text) && URL.canParse(text);
}

export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) => text.length <= 64 && !Number.isNaN(parseTime(text)),
  date: (text) => text.length === 10 && isVersionDate(text),
  time: (text) => text.length <= 64 && TIME.test(text),
  email: isEmail,
  hostname: isHostname,
  ipv4: isIPv4,
  ipv6: (text) => text.length <= 45 && isIPv6(text),
  uri: isUri,
  'uri-reference': (text) => !SPACE.test(text) && URL.canParse(text, 'https://example.com/'),
  uuid: (text) => UUID.test(text),
};
