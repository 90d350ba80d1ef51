/**
 * Takes the place of src/convert/converter-program.ts in the single-file executable, which starts itself in another role. Its arguments
 * are those of the program, so Node's options are in its environment. They cannot enlarge the stack.
 */
import type { ConverterProgram, ProcessLimits } from '../../src/convert/converter-program.ts';
import { CONVERTER_ROLE } from './roles.ts';

export const converterProgram = ({ heapMib, semiSpaceMib }: ProcessLimits): ConverterProgram => ({
  module: process.execPath,
  args: [CONVERTER_ROLE],
  execArgv: [],
  env: { NODE_OPTIONS: `--max-old-space-size=${heapMib} --max-semi-space-size=${semiSpaceMib}` },
});
