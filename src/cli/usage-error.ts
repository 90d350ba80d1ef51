/** The command line itself is wrong. Ends the program with code 2, as is the custom. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
