/** The command line is invalid. Ends the program with code 2, as is usual. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
