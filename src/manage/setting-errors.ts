/** Collects what is wrong with settings, so that one answer names all of it. Errors of URLs have codes of their own. */
import type { UrlCheck } from '../deliver/index.ts';
import { type FieldError, invalidFields, type Problem, type ProblemCode } from '../domain/problem.ts';

export interface SettingError extends FieldError {
  /** The code of the answer. Undefined: `invalid`. */
  readonly code?: ProblemCode;
}

/** Returns the error of a URL in a list, which is empty if Posthorn may call the URL. */
export function urlErrors(path: string, checked: UrlCheck): SettingError[] {
  return checked.ok ? [] : [{ path, message: checked.message, code: checked.code }];
}

/** Returns a problem that names all errors. If URLs are among them, it has the code of the first one. */
export function problemOf(errors: readonly SettingError[]): Problem {
  const code = errors.find((error) => error.code !== undefined)?.code;
  return invalidFields(
    errors.map(({ path, message }) => ({ path, message })),
    code,
  );
}
