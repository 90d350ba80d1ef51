/** Where the single-file executable starts. */
import { CONVERTER_ROLE } from './roles.ts';

// node:cluster and fork start a child as `<program> <script> <arguments>`. Here both are the executable, and it needs no script.
if (process.argv[2] === process.execPath) process.argv.splice(2, 1);

if (process.argv[2] === CONVERTER_ROLE && process.connected) void import('../../src/convert/process-main.ts');
else void import('../../src/cli/main.ts');
