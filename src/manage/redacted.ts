/** The API shows this instead of a stored secret. */
export const REDACTED = '[redacted]';
