/** What the API shows instead of a stored secret. */
export const REDACTED = '[redacted]';
