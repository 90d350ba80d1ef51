/** Where the single-file executable starts. */

// node:cluster starts a child as `<program> <script> <arguments>`. Here both are the executable, and it needs no script.
if (process.argv[2] === process.execPath) process.argv.splice(2, 1);

void import('../../src/cli/main.ts');
