/**
 * The code of a converter process: loads `posthorn.config.ts`, then runs one conversion after the other. It keeps its own
 * references to what it needs, because converters may change any global object.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Converter } from './config-file.ts';
import { importModule } from './import-module.ts';
import type {
  ConversionOrder,
  DeclaredConverter,
  LoadedModule,
  ProcessMessage,
  ProcessSetup,
} from './process-protocol.ts';

/** Not in TypeScript's library yet. */
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
interface JsonWithSources {
  parse(text: string, reviver?: Reviver): unknown;
  stringify(value: unknown, replacer: (key: string, value: unknown) => unknown): string | undefined;
  rawJSON(text: string): unknown;
}

const send = process.send!.bind(process);
const { parse, stringify, rawJSON } = JSON as unknown as JsonWithSources;
const { isFinite: isFiniteNumber } = Number;
const { isView } = ArrayBuffer;
const { isArray } = Array;
const decoder = new TextDecoder();
const encoder = new TextEncoder();
const decode = decoder.decode.bind(decoder);
const encode = encoder.encode.bind(encoder);
const post = (message: ProcessMessage): void => void send(message);
const converters = new Map<string, Converter>();
const findConverter = converters.get.bind(converters);

/**
 * Matches numbers with 16 or more digits, or an exponent of three digits: a JavaScript number may not hold them
 * exactly.
 */
const LONG_NUMBER = /(?:\d\.?){16}|\d[eE]\+?\d{3}/;
const isLong = LONG_NUMBER.test.bind(LONG_NUMBER);
const MAX_MESSAGE_LENGTH = 300;
const { store, notify } = Atomics;
/** The first element is 1 while a conversion runs. The second stays 0: the watchdog waits on it. */
const isRunning = new Int32Array(new SharedArrayBuffer(8));
let maxResultBytes = 0;

// --- loading ------------------------------------------------------------------------------------------------

/** Serves modules from the first load, so that a file that changes on disk has no effect before a restart. */
function recordModules(known: readonly LoadedModule[]): LoadedModule[] {
  const byUrl = new Map(known.map((module) => [module.url, module]));
  const loaded: LoadedModule[] = [];
  registerHooks({
    load(url, context, nextLoad) {
      const module = byUrl.get(url);
      if (module !== undefined)
        return { format: module.format as 'module', source: module.source, shortCircuit: true };
      const result = nextLoad(url, context);
      if (url.startsWith('file:')) {
        const source = result.source == null ? readFileSync(new URL(url), 'utf8') : textOf(result.source);
        loaded.push({ url, format: result.format ?? 'module', source });
      }
      return result;
    },
  });
  return loaded;
}

const textOf = (source: string | ArrayBuffer | NodeJS.TypedArray): string =>
  typeof source === 'string' ? source : decode(source as Uint8Array);

/** Hashes the content of the modules, not their paths: the same files in another folder are the same converters. */
function hashOf(modules: readonly LoadedModule[]): string {
  const digests = modules.map(({ source }) => createHash('sha256').update(source).digest('hex')).sort();
  return createHash('sha256').update(digests.join()).digest('hex').slice(0, 32);
}

async function load(setup: ProcessSetup): Promise<void> {
  maxResultBytes = setup.maxResultBytes;
  const loaded = recordModules(setup.modules);
  try {
    const namespace = await importModule(setup.configUrl);
    const declared = declare(readConverters(namespace));
    const modules = setup.modules.length === 0 ? loaded : setup.modules;
    watch(setup.maxGrowthBytes);
    post({ kind: 'loaded', declared, modules, hash: hashOf(modules) });
  } catch (error) {
    post({ kind: 'refused', message: describeError(error) });
  }
}

function readConverters(namespace: Record<string, unknown>): Record<string, unknown> {
  const main = namespace.default;
  const given = isObject(main) && 'converters' in main ? main.converters : namespace.converters;
  if (given === undefined && !isObject(main))
    throw new Error('it must have a default export such as { converters: { … } }');
  if (given !== undefined && !isObject(given)) throw new Error('converters must be an object');
  return given ?? {};
}

function declare(given: Record<string, unknown>): DeclaredConverter[] {
  return Object.entries(given).flatMap(([type, steps]) => {
    if (!isObject(steps)) throw new Error(`converters['${type}'] must be an object`);
    return Object.entries(steps).map(([key, converter]) => {
      const isFunction = typeof converter === 'function';
      if (isFunction) converters.set(`${type}\n${key}`, converter as Converter);
      return { type, key, isFunction };
    });
  });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// --- converting ---------------------------------------------------------------------------------------------

function run({ id, type, keys, data }: ConversionOrder): void {
  post({ kind: 'begun', id });
  store(isRunning, 0, 1);
  notify(isRunning, 0);
  let step = '';
  let message: ProcessMessage;
  try {
    let value = parseData(decode(data));
    for (const key of keys) {
      step = key;
      value = findConverter(`${type}\n${key}`)!(value);
      if (value === undefined) throw new Error('it returned undefined; return the converted data');
      checkPromise(value);
    }
    const converted = encode(toJson(value));
    if (converted.length > maxResultBytes)
      throw new Error(`it returned ${converted.length} bytes; ${maxResultBytes} are allowed`);
    message = { kind: 'converted', id, data: converted, usedBytes: usedBytes() };
  } catch (error) {
    message = { kind: 'failed', id, message: `${step}: ${describeError(error)}`, usedBytes: usedBytes() };
  }
  store(isRunning, 0, 0);
  post(message);
}

function parseData(text: string): unknown {
  if (!isLong(text)) return parse(text);
  return parse(text, keepLongNumber);
}

const keepLongNumber: Reviver = (_key, value, { source }) =>
  typeof value === 'number' && source !== undefined && `${value}` !== source && isLong(source)
    ? rawJSON(source)
    : value;

function checkPromise(value: unknown): void {
  if (typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function')
    throw new Error('it returned a promise; converters must not be async');
}

function toJson(value: unknown): string {
  const text = stringify(value, refuseOtherThanJson);
  if (text === undefined) throw new Error(`it returned a ${typeof value}, which is not JSON`);
  return text;
}

/** `JSON.stringify` would silently write null or {} for these. It calls this with the object that has the field as `this`. */
function refuseOtherThanJson(this: unknown, key: string, value: unknown): unknown {
  const isRefused =
    (typeof value === 'number' && !isFiniteNumber(value)) ||
    typeof value === 'function' ||
    typeof value === 'symbol' ||
    typeof value === 'bigint' ||
    (value === undefined && isArray(this)) ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof Promise ||
    isView(value);
  if (isRefused) throw new Error(`"${key}" of its result is not JSON (${nameOf(value)})`);
  return value;
}

const nameOf = (value: unknown): string =>
  typeof value === 'object' ? value!.constructor.name : typeof value === 'number' ? `${value}` : typeof value;

/** A thrown value may be anything, also something that throws when it is read. */
function describeError(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw ${String(error)}`;
    return text.replace(/^Error: /, '').slice(0, MAX_MESSAGE_LENGTH);
  } catch {
    return 'threw a value that cannot be shown';
  }
}

function usedBytes(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
}

// --- limits -------------------------------------------------------------------------------------------------

/**
 * Kills the process when it takes too much memory, or when the server has ended while a converter hangs. A thread does it,
 * because a converter may hold the main thread. V8's limit does not cover buffers.
 */
const WATCHDOG = `
  const { workerData: { isRunning, maxBytes, parent } } = require('node:worker_threads');
  for (;;) {
    // While no conversion runs, watch only for the end of the server.
    if (Atomics.wait(isRunning, 0, 0, 1000) === 'not-equal') Atomics.wait(isRunning, 1, 0, 20);
    if (process.memoryUsage.rss() > maxBytes || process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  }
`;

function watch(maxGrowthBytes: number): void {
  const maxBytes = process.memoryUsage.rss() + maxGrowthBytes;
  new Worker(WATCHDOG, { eval: true, workerData: { isRunning, maxBytes, parent: process.ppid } }).unref();
}

// A property added here would appear in the results of all converters.
Object.preventExtensions(Object.prototype);
// A signal could end the server, and an abort would look like a lack of memory.
for (const name of ['kill', 'abort'] as const)
  process[name] = () => {
    throw new Error(`process.${name} is not available to converters`);
  };
// Only this module answers.
Reflect.deleteProperty(process, 'send');
process.disconnect = () => {};
const { exit } = process;
process.on('disconnect', () => exit(0));
// Ctrl+C reaches all processes of the terminal. The server decides when its converters end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('uncaughtException', () => post({ kind: 'spoiled' }));
process.once('message', (setup) => {
  process.on('message', (order) => run(order as ConversionOrder));
  void load(setup as ProcessSetup);
});
