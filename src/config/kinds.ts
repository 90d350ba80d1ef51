/**
 * The kinds of settings. A kind reads a value from text, describes which values are allowed, and shows a value as text.
 * `read` never throws: it returns an `Invalid`, so that all invalid settings can be reported at once.
 */
import { readAddressRange } from '../domain/address-range.ts';
import { MASK } from './mask.ts';

export type Mode = 'dev' | 'serve';

/** `whole`: never shown. `password`: a URL that is shown with its password masked. */
export type Secrecy = 'open' | 'whole' | 'password';

export class Invalid {}
const INVALID = new Invalid();

export interface Setting<T> {
  /** The environment variable. Null: `POSTHORN_` and the key in upper snake case. */
  readonly env: string | null;
  /** The flag without its dashes. Null: the key in kebab case. */
  readonly flag: string | null;
  readonly default: T | ((mode: Mode) => T);
  readonly about: string;
  /** True if hardly anyone needs to change it. Documented on a separate page. */
  readonly internal: boolean;
  readonly secrecy: Secrecy;
  /** "a whole number from 0 to 65535": completes "Allowed: …". */
  readonly allowed: string;
  /** True if the flag needs no value. */
  readonly isSwitch: boolean;
  read(text: string): T | Invalid;
  show(value: T): string;
}

interface Basics<D> {
  readonly default: D | ((mode: Mode) => D);
  readonly about: string;
  readonly env?: string;
  readonly flag?: string;
  readonly secret?: boolean;
  readonly internal?: boolean;
}

interface Kind<T> {
  readonly allowed: string;
  readonly isSwitch?: boolean;
  readonly secrecy?: Secrecy;
  read(text: string): T | Invalid;
  show(value: T): string;
}

function setting<T, D>(basics: Basics<D>, kind: Kind<T>): Setting<T | D> {
  return {
    env: basics.env ?? null,
    flag: basics.flag ?? null,
    default: basics.default,
    about: basics.about,
    internal: basics.internal ?? false,
    secrecy: kind.secrecy ?? (basics.secret === true ? 'whole' : 'open'),
    allowed: kind.allowed,
    isSwitch: kind.isSwitch ?? false,
    read: kind.read,
    show: (value) => (value === null ? 'not set' : kind.show(value as T)),
  };
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** Plain decimals only. `Number()` alone would also accept `0x10`, `1e3`, an empty text and spaces. */
const WHOLE = /^-?\d+$/;
const DECIMAL = /^-?\d+(\.\d+)?$/;

function within(value: number, { min, max }: Range): number | Invalid {
  const inside = value >= (min ?? Number.NEGATIVE_INFINITY) && value <= (max ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(value) && inside ? value : INVALID;
}

function describeRange({ min, max }: Range, show: (value: number) => string = String): string {
  if (min !== undefined && max !== undefined) return ` from ${show(min)} to ${show(max)}`;
  if (min !== undefined) return ` of at least ${show(min)}`;
  if (max !== undefined) return ` of at most ${show(max)}`;
  return '';
}

export function integer<D extends number | null>(spec: Basics<D> & Range): Setting<number | D> {
  return setting<number, D>(spec, {
    allowed: `a whole number${describeRange(spec)}`,
    read: (text) => {
      const value = Number(text);
      return WHOLE.test(text) && Number.isSafeInteger(value) ? within(value, spec) : INVALID;
    },
    show: String,
  });
}

export function number<D extends number | null>(spec: Basics<D> & Range): Setting<number | D> {
  return setting<number, D>(spec, {
    allowed: `a number${describeRange(spec)}`,
    read: (text) => (DECIMAL.test(text) ? within(Number(text), spec) : INVALID),
    show: String,
  });
}

const DURATION_UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const BYTE_UNITS = {
  B: 1,
  kB: 1000,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
} as const;
const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
const BYTES = /^(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?$/;

/** Reads `2s` or `2`: a number without a unit counts in the smallest unit. The result must be a whole number of it. */
function readQuantity(text: string, form: RegExp, units: Readonly<Record<string, number>>): number | Invalid {
  const parts = form.exec(text);
  if (parts === null) return INVALID;
  // 1.1 s is 1100.0000000000002 in floating point: round that, but refuse 0.5 ms.
  const exact = Number(parts[1]) * (parts[2] === undefined ? 1 : units[parts[2]]!);
  const whole = Math.round(exact);
  return Number.isSafeInteger(whole) && Math.abs(exact - whole) < 1e-6 ? whole : INVALID;
}

/** Uses the largest unit in which the value is a whole number: 90000 is `90s`, 300000 is `5m`. */
function showQuantity(value: number, units: readonly (readonly [string, number])[]): string {
  for (const [name, size] of units) if (value >= size && value % size === 0) return `${value / size}${name}`;
  return String(value);
}

export function showDuration(valueMs: number): string {
  return showQuantity(valueMs, Object.entries(DURATION_UNITS).toReversed());
}

export function showBytes(value: number): string {
  const { GiB, MiB, KiB } = BYTE_UNITS;
  return showQuantity(value, Object.entries({ GiB, MiB, KiB }));
}

/** A time in milliseconds; the key ends in `Ms`. */
export function duration<D extends number | null>(spec: Basics<D> & Range): Setting<number | D> {
  return setting<number, D>(spec, {
    allowed: `a duration${describeRange(spec, showDuration)}, written 500, 500ms, 2s, 5m, 1h or 1d`,
    read: (text) => {
      const value = readQuantity(text, DURATION, DURATION_UNITS);
      return value instanceof Invalid ? value : within(value, spec);
    },
    show: showDuration,
  });
}

/** A size in bytes; the key ends in `Bytes`. */
export function bytes<D extends number | null>(spec: Basics<D> & Range): Setting<number | D> {
  return setting<number, D>(spec, {
    allowed: `a size${describeRange(spec, showBytes)}, written 65536, 256KiB, 4MiB or 1GiB`,
    read: (text) => {
      const value = readQuantity(text, BYTES, BYTE_UNITS);
      return value instanceof Invalid ? value : within(value, spec);
    },
    show: showBytes,
  });
}

const YES = new Set(['true', '1', 'yes', 'on']);
const NO = new Set(['false', '0', 'no', 'off']);

export function boolean<D extends boolean | null>(spec: Basics<D>): Setting<boolean | D> {
  return setting<boolean, D>(spec, {
    allowed: 'true or false (also 1, yes, on; 0, no, off)',
    isSwitch: true,
    read: (text) => {
      const lower = text.toLowerCase();
      if (YES.has(lower)) return true;
      return NO.has(lower) ? false : INVALID;
    },
    show: String,
  });
}

export function choice<const C extends string, D extends NoInfer<C> | null>(
  spec: Basics<D> & { readonly of: readonly C[] },
): Setting<C | D> {
  return setting<C, D>(spec, {
    allowed: `one of ${spec.of.join(', ')}`,
    read: (text) => spec.of.find((each) => each === text) ?? INVALID,
    show: String,
  });
}

export function text<D extends string | null>(
  spec: Basics<D> & { readonly minLength?: number; readonly maxLength?: number },
): Setting<string | D> {
  const { minLength = 1, maxLength = 4096 } = spec;
  return setting<string, D>(spec, {
    allowed:
      minLength > 1
        ? `a text of at least ${minLength} characters`
        : `a text of at most ${maxLength} characters`,
    read: (given) => (given.length >= minLength && given.length <= maxLength ? given : INVALID),
    show: String,
  });
}

export function url<D extends string | null>(
  spec: Basics<D> & { readonly schemes: readonly string[] },
): Setting<string | D> {
  const forms = spec.schemes.map((scheme) => `${scheme}://`).join(' or ');
  return setting<string, D>(spec, {
    allowed: `an address that starts with ${forms}`,
    secrecy: spec.secret === true ? 'password' : 'open',
    read: (given) => {
      const scheme = /^([a-z][a-z0-9+.-]*):\/\/\S+$/.exec(given)?.[1];
      if (scheme === undefined || !spec.schemes.includes(scheme)) return INVALID;
      // PostgreSQL connection strings need not be WHATWG URLs (an empty host before a socket directory): the driver
      // checks them.
      if (scheme.startsWith('postgres')) return given;
      return URL.canParse(given) ? given.replace(/\/+$/, '') : INVALID;
    },
    show: String,
  });
}

/** Lists are separated by commas. `none` is the empty list, because an empty variable counts as unset. */
function readList<T>(given: string, readItem: (item: string) => T | Invalid): readonly T[] | Invalid {
  if (given === 'none') return [];
  const items: T[] = [];
  for (const part of given.split(',')) {
    const item = readItem(part.trim());
    if (item instanceof Invalid) return item;
    items.push(item);
  }
  return items;
}

const showList = (items: readonly unknown[]): string => (items.length === 0 ? 'none' : items.join(','));

/** An address without a prefix length means that single address. */
const readCidr = (given: string): string | Invalid => readAddressRange(given) ?? INVALID;

export function texts(spec: Basics<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[], readonly string[]>(spec, {
    allowed: 'texts separated by commas, or none',
    read: (given) => readList(given, (item) => (item === '' ? INVALID : item)),
    show: showList,
  });
}

/** Texts of a form that `of` describes. */
export function listOf(
  spec: Basics<readonly string[]> & { readonly of: string; readonly isValid: (item: string) => boolean },
): Setting<readonly string[]> {
  return setting<readonly string[], readonly string[]>(spec, {
    allowed: `${spec.of}; several are separated by commas`,
    read: (given) => readList(given, (item) => (spec.isValid(item) ? item : INVALID)),
    show: showList,
  });
}

/** Address ranges, each as `address/prefix`. */
export function cidrs(spec: Basics<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[], readonly string[]>(spec, {
    allowed: 'addresses or CIDR ranges separated by commas, such as 10.0.0.0/8,fd00::/8, or none',
    read: (given) => readList(given, readCidr),
    show: showList,
  });
}

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

const LISTEN_ADDRESS = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i;

/** `host:port` to listen on. */
export function listenAddress<D extends ListenAddress | null>(spec: Basics<D>): Setting<ListenAddress | D> {
  return setting<ListenAddress, D>(spec, {
    allowed: 'an address and a port, such as 127.0.0.1:9464 or [::1]:9464',
    read: (given) => {
      const [, v6, host, port] = LISTEN_ADDRESS.exec(given) ?? [];
      if (Number(port) > 65_535 || port === undefined) return INVALID;
      return { host: v6 ?? host!, port: Number(port) };
    },
    show: ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`,
  });
}

const HOST_NAME = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/** Names of hosts in lower case. `*.` in front means all names below it. */
export function hostNames(spec: Basics<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[], readonly string[]>(spec, {
    allowed: 'host names separated by commas, such as id.example.com,*.example.org, or none',
    read: (given) =>
      readList(given, (item) => (HOST_NAME.test(item.toLowerCase()) ? item.toLowerCase() : INVALID)),
    show: showList,
  });
}

export function integers(spec: Basics<readonly number[]> & Range): Setting<readonly number[]> {
  return setting<readonly number[], readonly number[]>(spec, {
    allowed: `whole numbers${describeRange(spec)} separated by commas, or none`,
    read: (given) => readList(given, (item) => (WHOLE.test(item) ? within(Number(item), spec) : INVALID)),
    show: showList,
  });
}

const KEY_BYTES = 32;

/** 32 bytes in base64 or base64url. `Buffer.from` skips invalid characters, so the text is encoded again to compare. */
function readKey(given: string): Buffer | Invalid {
  const standard = given.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
  const key = Buffer.from(standard, 'base64');
  return key.length === KEY_BYTES && key.toString('base64').replace(/=+$/, '') === standard ? key : INVALID;
}

const KEY_ADVICE = '(generate one: openssl rand -base64 32)';

export function key32<D extends Buffer | null>(spec: Basics<D>): Setting<Buffer | D> {
  return setting<Buffer, D>(
    { ...spec, secret: true },
    { allowed: `32 bytes in base64 ${KEY_ADVICE}`, read: readKey, show: () => MASK },
  );
}

export function key32List(spec: Basics<readonly Buffer[]>): Setting<readonly Buffer[]> {
  return setting<readonly Buffer[], readonly Buffer[]>(
    { ...spec, secret: true },
    {
      allowed: `keys of 32 bytes in base64, separated by commas, or none ${KEY_ADVICE}`,
      read: (given) => readList(given, readKey),
      show: showList,
    },
  );
}
