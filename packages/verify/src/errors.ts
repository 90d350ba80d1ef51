/** Why a request was not accepted as a webhook. A closed list: a switch over it can be exhaustive. */
export const verificationReasons = {
  missing_header: 'A header that the signature needs is not there.',
  malformed_header: 'A header cannot be read.',
  unsupported_signature: 'None of the signatures is of a kind that the given secrets can check.',
  signature_mismatch: 'No signature fits: another secret, or the body is not the one that was sent.',
  timestamp_too_old:
    'The signature is right, but was made too long ago: a replayed request, or a wrong clock.',
  timestamp_too_new: 'The signature is right, but comes from the future: check the clocks.',
  body_already_parsed: 'The body was parsed before it could be verified; the exact bytes are gone.',
  body_too_large: 'The body is larger than allowed.',
  malformed_body: 'The signature is right, but the body is not JSON.',
} as const;
export type VerificationReason = keyof typeof verificationReasons;

export class VerificationError extends Error {
  override readonly name: string = 'VerificationError';
  readonly reason: VerificationReason;

  constructor(reason: VerificationReason, detail?: string) {
    super(detail === undefined ? verificationReasons[reason] : `${verificationReasons[reason]} ${detail}`);
    this.reason = reason;
  }

  /**
   * What to answer. 4xx ends a delivery at once, as it should for a forgery. A body that was parsed too early is the
   * receiver's own mistake: with 500 the sender comes again when it is repaired.
   */
  get status(): 401 | 413 | 500 {
    if (this.reason === 'body_too_large') return 413;
    return this.reason === 'body_already_parsed' ? 500 : 401;
  }
}
