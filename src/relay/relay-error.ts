/** A problem that a person must fix in the source. The message says what is wrong, the hint says what to do. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly hint: string;
  /** True if trying again cannot help. */
  readonly final: boolean;

  constructor(message: string, hint: string, { final, cause }: { final: boolean; cause?: unknown }) {
    super(message, { cause });
    this.hint = hint;
    this.final = final;
  }
}
