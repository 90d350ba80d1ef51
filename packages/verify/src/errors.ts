/** All reasons for rejecting a request. */
export const verificationReasons = {
  missing_header: 'A header that the signature needs is missing.',
  malformed_header: 'A header is malformed.',
  unsupported_signature: 'The given secrets cannot check any of the signatures.',
  signature_mismatch: 'No signature matches: the secret is wrong, or the body was changed.',
  timestamp_too_old: 'The signature is valid but too old: the request was replayed, or a clock is wrong.',
  timestamp_too_new: 'The signature is valid but from the future: a clock is wrong.',
  body_already_parsed: 'The body was parsed before verification, so its exact bytes are lost.',
  body_too_large: 'The body is larger than allowed.',
  malformed_body: 'The signature is valid, but the body is not JSON.',
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
   * The status code to answer with. 4xx ends the delivery, which is right for a forgery. A body that was parsed too early
   * is the receiver's mistake: 500 makes the sender retry until it is fixed.
   */
  get status(): 401 | 413 | 500 {
    if (this.reason === 'body_too_large') return 413;
    return this.reason === 'body_already_parsed' ? 500 : 401;
  }
}
