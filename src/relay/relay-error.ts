/** Something about the source that a person has to put right: what is the case, and what to do. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly hint: string;
  /** Trying again will not help. */
  readonly final: boolean;

  constructor(message: string, hint: string, { final, cause }: { final: boolean; cause?: unknown }) {
    super(message, { cause });
    this.hint = hint;
    this.final = final;
  }
}
