/** `problem`: it stops Posthorn from working. */
export type State = 'ok' | 'warning' | 'problem';

export interface Finding {
  readonly check: string;
  readonly state: State;
  readonly detail: string;
  /** What to do about it. Null: nothing. */
  readonly todo: string | null;
}

export const ok = (check: string, detail: string): Finding => ({ check, state: 'ok', detail, todo: null });
export const warning = (check: string, detail: string, todo: string): Finding => ({
  check,
  state: 'warning',
  detail,
  todo,
});
export const problem = (check: string, detail: string, todo: string): Finding => ({
  check,
  state: 'problem',
  detail,
  todo,
});
