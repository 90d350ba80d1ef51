/** The converters of a configuration: which steps exist, and the hash that names this state of the code. */
import { isEventType } from '../domain/event.ts';
import { findPath, readStep, type VersionStep } from '../domain/version-pins.ts';
import type { LoadedConverters } from './converter-process.ts';
import type { LoadedModule } from './process-protocol.ts';

interface DeclaredStep extends VersionStep {
  readonly key: string;
}

export class ConverterSet {
  readonly url: string;
  readonly modules: readonly LoadedModule[];
  /** Changes with the text of any module that the configuration imports. */
  readonly hash: string;
  readonly #steps = new Map<string, DeclaredStep[]>();

  /** Throws an error that lists everything that is wrong. */
  constructor(url: string, { declared, modules, hash }: LoadedConverters) {
    this.url = url;
    this.modules = modules;
    this.hash = hash;
    const complaints: string[] = [];
    for (const { type, key, isFunction } of declared) {
      const name = `converters['${type}']['${key}']`;
      const step = readStep(key);
      const steps = this.#steps.get(type) ?? [];
      if (!isEventType(type)) complaints.push(`"${type}" in converters is not an event type`);
      else if (step === null)
        complaints.push(`${name} must be named by two versions, such as "2026-04-01→2025-10-01"`);
      else if (!isFunction) complaints.push(`${name} must be a function`);
      else if (steps.some(({ from, to }) => from === step.from && to === step.to))
        complaints.push(`${name} is there twice, with → and ->`);
      else this.#steps.set(type, [...steps, { ...step, key }]);
    }
    if (complaints.length > 0) throw new Error(complaints.join('; '));
  }

  get size(): number {
    return [...this.#steps.values()].reduce((sum, steps) => sum + steps.length, 0);
  }

  /** Returns the shortest chain of converters, or null if there is none. */
  findPath(type: string, from: string, to: string): readonly VersionStep[] | null {
    const steps = this.#steps.get(type);
    return steps === undefined ? null : findPath(steps, from, to);
  }

  /** The names under which the configuration has these steps. */
  keysOf(type: string, path: readonly VersionStep[]): string[] {
    const steps = this.#steps.get(type) ?? [];
    return path.map((step) => steps.find(({ from, to }) => from === step.from && to === step.to)!.key);
  }
}
