/** What a command has to say to its user. The log goes to stderr; stdout is only for this. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** `posthorn help | head` closes stdout early. That is no reason to end a server. */
export function ignoreClosedStdout(): void {
  process.stdout.on('error', () => {});
}
