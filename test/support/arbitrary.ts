/** Generates requests for an operation from its schemas: valid, nearly valid, and hostile ones. */
import fc, { type Arbitrary } from 'fast-check';
import type { JsonSchema } from '../../src/api/openapi/components.ts';
import type { ApiOperation, Contract } from './contract.ts';
import { placesOf } from './world.ts';

export interface FuzzRequest {
  readonly operation: string;
  /** Path parameters by place. Null: the value of the test world. */
  readonly path: Readonly<Record<string, string | null>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Texts that have caused errors in other programs. */
const NASTY_TEXTS = [
  '', ' ', '\0', 'a\0b', '\u{10ffff}', '\ud800', '\udc00', '\u202e', '\ufeff', '😀'.repeat(50), 'é', 'İ', 'ß',
  '__proto__', 'constructor', 'toString', 'null', 'undefined', 'NaN', 'true', '0', '-1', '1e999', '0x10', '1.5',
  "'; drop table posthorn.events; --", '%', '%s', '$' + '{7*7}', '{{7*7}}', '../../etc/passwd', '\\', '"', '\r\n', '\n', '\t',
  'a'.repeat(129), 'a'.repeat(256), 'a'.repeat(3000), '*', '*.*', '.', '..', 'a.', '.a', 'posthorn.x', 'ep_', 'evt_', 'dlv_zzzz',
  'ep_00000000000000000000000000', 'ep_7zzzzzzzzzzzzzzzzzzzzzzzzz', 'evt_7zzzzzzzzzzzzzzzzzzzzzzzzz', 'dlv_7zzzzzzzzzzzzzzzzzzzzzzzzz',
  'task_7zzzzzzzzzzzzzzzzzzzzzzzzz', 'EP_00000000000000000000000000',
  '2027-01-31T12:00:00Z', '2027-02-31T12:00:00Z', '9999-12-31T23:59:59.999Z', '0000-01-01T00:00:00Z', '0001-01-01T00:00:00Z',
  '1969-12-31T23:59:59Z', '2027-01-31T12:00:00+23:59', '2027-01-31', '12:00', '275760-09-13T00:00:00Z',
  'http://', 'http://[::1', 'https://user:pass@127.0.0.1', 'http://169.254.169.254/', 'http://0/', 'file:///etc/passwd', 'javascript:1',
]; // biome-ignore format: a list to look over
const NASTY_VALUES: readonly unknown[] = [
  null, true, false, 0, -0, -1, 1.5, 1e15, 1e21, 1e308, -1e308, 5e-324, 2 ** 31, 2 ** 53, Number.MAX_SAFE_INTEGER,
  [], {}, [[]], [null], { a: 1 }, [{}], { length: 1e9 }, { toJSON: 1 },
]; // biome-ignore format: a list to look over
const NASTY_NAMES = [
  '__proto__',
  'constructor',
  'hasOwnProperty',
  '',
  '\0',
  '$ref',
  'x'.repeat(300),
  'toJSON',
  '😀',
];

const nastyText = fc.oneof(fc.constantFrom(...NASTY_TEXTS), fc.string({ unit: 'binary', maxLength: 40 }));
/** Clients resolve `.` and `..` in a path, so these never arrive. */
const pathText = nastyText.filter((text) => text !== '.' && text !== '..');
const nastyValue = fc.oneof(
  nastyText,
  fc.constantFrom(...NASTY_VALUES),
  fc.jsonValue({ maxDepth: 3 }),
  fc.double(),
);

export class Arbitraries {
  readonly #contract: Contract;
  /** Valid texts for fields by name, if the schema does not suffice, such as an allowed URL. */
  readonly #known: Readonly<Record<string, string>>;

  constructor(contract: Contract, known: Readonly<Record<string, string>>) {
    this.#contract = contract;
    this.#known = known;
  }

  requestOf(operation: ApiOperation): Arbitrary<FuzzRequest> {
    const { parameters = [] } = operation.operation;
    const texts = (place: string) =>
      Object.fromEntries(
        parameters
          .filter((parameter) => parameter.in === place)
          .map(({ name, schema }) => [name, mostly(this.#fitting(schema, name).map(String), nastyText)]),
      );
    const path = Object.fromEntries(
      placesOf(operation.path).map((place) => [
        place,
        fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: pathText }),
      ]),
    );
    return fc.record({
      operation: fc.constant(operation.name),
      path: fc.record(path),
      query: fc.oneof(
        { weight: 4, arbitrary: some(texts('query')) },
        { weight: 1, arbitrary: fc.dictionary(nastyText, nastyText, { maxKeys: 3 }) },
      ),
      headers: some(texts('header')).map(sendable),
      body: this.#bodyOf(operation),
    });
  }

  #bodyOf({ method, body }: ApiOperation): Arbitrary<string | null> {
    if (method === 'GET' || method === 'DELETE') return fc.constant(null);
    const none = { weight: 1, arbitrary: fc.constant<string | null>(null) };
    const anything = { weight: 1, arbitrary: fc.oneof(nastyValue.map(toText), nastyText) };
    if (body === null) return fc.oneof({ ...none, weight: 4 }, anything);
    const examples = (this.#contract.resolve(body).examples ?? []) as unknown[];
    const fitting = fc.oneof(
      this.#fitting(body, 'body'),
      fc.constantFrom(...examples.map((example) => this.#withKnown(example))),
    );
    return fc.oneof(
      none,
      anything,
      { weight: 8, arbitrary: fitting.map(toText) },
      { weight: 8, arbitrary: spoiled(fitting).map(toText) },
    );
  }

  /** Replaces the texts of an example by those of existing objects. */
  #withKnown(example: unknown): unknown {
    return JSON.parse(JSON.stringify(example), (name, value) =>
      typeof value === 'string' ? (this.#known[name] ?? value) : value,
    );
  }

  #fitting(given: JsonSchema, name: string, depth = 0): Arbitrary<unknown> {
    const schema = this.#contract.resolve(given);
    if (Array.isArray(schema.anyOf))
      return fc.oneof(...(schema.anyOf as JsonSchema[]).map((part) => this.#fitting(part, name, depth)));
    if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
    if (schema.const !== undefined) return fc.constant(schema.const);
    switch (schema.type) {
      case 'string': {
        const known = this.#known[name];
        return known === undefined ? fittingText(schema) : mostly(fc.constant(known), fittingText(schema));
      }
      case 'integer':
        return fc.integer({ min: lowest(schema), max: highest(schema) });
      case 'number':
        return fc.double({ min: lowest(schema), max: highest(schema), noNaN: true });
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array': {
        const limits = {
          minLength: Number(schema.minItems ?? 0),
          maxLength: Math.min(Number(schema.maxItems ?? 4), 4),
        };
        return fc.array(this.#fitting((schema.items ?? {}) as JsonSchema, name, depth + 1), limits);
      }
      case 'object':
        return this.#fittingObject(schema, depth);
      default:
        return fc.jsonValue({ maxDepth: 2 });
    }
  }

  #fittingObject(schema: JsonSchema, depth: number): Arbitrary<unknown> {
    const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
    if (Object.keys(properties).length === 0) {
      const values = schema.additionalProperties;
      const value =
        typeof values === 'object' ? this.#fitting(values as JsonSchema, '', depth + 1) : fc.jsonValue();
      return fc.dictionary(fc.stringMatching(/^[a-z][a-z-]{0,8}$/), value, { maxKeys: 3 });
    }
    const required = new Set(schema.required as string[] | undefined);
    // Only a few optional fields: some fields exclude each other.
    const fields = Object.entries(properties).map(([name, part]) => {
      const value = this.#fitting(part, name, depth + 1);
      return [name, required.has(name) ? value : mostly(fc.constant(undefined), value)];
    });
    return fc.record(Object.fromEntries(fields) as Record<string, Arbitrary<unknown>>);
  }
}

const mostly = <T>(usual: Arbitrary<T>, other: Arbitrary<T>): Arbitrary<T> =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: other });

function fittingText(schema: JsonSchema): Arbitrary<string> {
  if (typeof schema.pattern === 'string') {
    const pattern = new RegExp(schema.pattern);
    // fast-check does not know lookahead: it generates without, and drops what does not match.
    return fc
      .stringMatching(new RegExp(schema.pattern.replaceAll(/\(\?[!=][^()]*\)/g, '')), {
        maxLength: Number(schema.maxLength ?? 100),
        size: 'small',
      })
      .filter((text) => pattern.test(text));
  }
  if (schema.format === 'date-time')
    return fc
      .date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true })
      .map((date) => date.toISOString());
  const examples = (schema.examples ?? []) as string[];
  const text = fc.string({
    minLength: Number(schema.minLength ?? 0),
    maxLength: Math.min(Number(schema.maxLength ?? 30), 30),
  });
  return examples.length === 0 ? text : fc.oneof(fc.constantFrom(...examples), text);
}

const lowest = ({ minimum, exclusiveMinimum }: JsonSchema): number =>
  minimum !== undefined
    ? Number(minimum)
    : exclusiveMinimum !== undefined
      ? Number(exclusiveMinimum) + 1e-3
      : -1000;
const highest = ({ maximum }: JsonSchema): number => Number(maximum ?? 1e6);

/** A valid value with one part replaced, removed or added. */
function spoiled(fitting: Arbitrary<unknown>): Arbitrary<unknown> {
  return fc
    .tuple(
      fitting,
      fc.nat(),
      fc.constantFrom('replace', 'remove', 'add'),
      nastyValue,
      fc.constantFrom(...NASTY_NAMES),
    )
    .map(([value, at, how, nasty, name]) => {
      const text = JSON.stringify(value) ?? 'null';
      const copy = JSON.parse(text) as unknown;
      const places = placesIn(copy);
      if (places.length === 0) return nasty;
      const [holder, key] = places[at % places.length]!;
      if (how === 'remove') delete holder[key];
      else if (how === 'replace') holder[key] = nasty;
      // An assignment would not add `__proto__`.
      else Object.defineProperty(holder, name, { value: nasty, enumerable: true, configurable: true });
      return copy;
    });
}

type Holder = Record<string, unknown>;

function placesIn(value: unknown): [holder: Holder, key: string][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => [
    [value as Holder, key] as [Holder, string],
    ...placesIn(part),
  ]);
}

const toText = (value: unknown): string => JSON.stringify(value) ?? 'undefined';

/** A few of the parameters, or none. */
function some(texts: Record<string, Arbitrary<string>>): Arbitrary<Record<string, string>> {
  const optional = Object.entries(texts).map(
    ([name, text]) => [name, mostly(fc.constant(undefined), text)] as const,
  );
  return fc
    .record(Object.fromEntries(optional) as Record<string, Arbitrary<string | undefined>>)
    .map((given) => JSON.parse(JSON.stringify(given)) as Record<string, string>);
}

/** Replaces characters that an HTTP client cannot send in a header. */
function sendable(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?')]),
  );
}
