/**
 * Runs the patterns of schemas with RE2, whose time is linear in the length of the text: no pattern can backtrack
 * exponentially. RE2 has no lookaround and no back references, so patterns that need them are refused.
 */
import { RE2JS } from 're2js';
import { budget } from './step-budget.ts';

export const MAX_PATTERN_LENGTH = 1_000;
/** A pattern such as `(a{100}){10}` is short and compiles to a large program. */
const MAX_PROGRAM_SIZE = 2_000;
const CACHED_PATTERNS = 1_000;
const CHARACTERS_PER_STEP = 10;

export interface LinearPattern {
  /** The size of its program. Compiling takes time in proportion to it. */
  readonly size: number;
  test(text: string): boolean;
}

const compiled = new Map<string, LinearPattern>();

/** Throws an error that says what is wrong with the pattern. */
export function compilePattern(pattern: string): LinearPattern {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  if (pattern.length > MAX_PATTERN_LENGTH)
    throw new Error(`must have at most ${MAX_PATTERN_LENGTH} characters`);
  const made = compile(pattern);
  if (compiled.size >= CACHED_PATTERNS) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

function compile(pattern: string): LinearPattern {
  try {
    new RegExp(pattern, 'u');
  } catch {
    throw new Error('is not a valid regular expression');
  }
  let program: RE2JS;
  try {
    program = RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    throw new Error(
      'cannot run in linear time: lookahead, lookbehind, back references and counts above 1000 are not supported',
    );
  }
  const size = program.programSize();
  if (size > MAX_PROGRAM_SIZE) throw new Error('repeats too much: write it with smaller counts');
  return {
    size,
    test(text) {
      budget.take(1 + Math.ceil((text.length * size) / CHARACTERS_PER_STEP));
      return program.test(text);
    },
  };
}
