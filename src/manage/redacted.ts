/** What the API shows instead of a stored secret. Sent back unchanged, it keeps the stored secret. */
export const REDACTED = '[redacted]';
