/** The public interface of the deliver stage. */
export { type Challenger, createChallenger } from './challenge.ts';
export { SHORTAGES } from './classify-error.ts';
export {
  createDeliverer,
  type Deliverer,
  type DelivererOptions,
  type DelivererStats,
  type OutgoingRequest,
} from './deliverer.ts';
export { checkUrl, findUrlSyntaxError, type UrlCheck } from './egress/check-url.ts';
export { compilePolicy, DEVELOPMENT_EGRESS, type EgressPolicy, STRICT_EGRESS } from './egress/policy.ts';
export { buildBatchBody, buildBody } from './envelope.ts';
export {
  type HeaderRedaction,
  isCredentialHeader,
  isReservedHeader,
  isSendableHeader,
  redactHeaders,
  redactionOf,
  SIGNATURE_SUFFIXES,
} from './headers.ts';
export { type ConfirmationGate, Mailer } from './mailer.ts';
export { addressOf, maskTarget } from './redacted-url.ts';
export { createDnsLookup, createSystemLookup, type Lookup } from './resolve.ts';
export { createSender } from './send-notices.ts';
export { signMessage } from './sign.ts';
export { signatureHeaders } from './signature-headers.ts';
export { SmtpTransport } from './smtp.ts';
