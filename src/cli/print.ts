/** Prints the output of a command. stdout has nothing else: the log goes to stderr. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A reader such as `| head` may close stdout early. That must not end a server. */
export function ignoreClosedStdout(): void {
  process.stdout.on('error', () => {});
}
