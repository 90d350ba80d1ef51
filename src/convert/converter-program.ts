/** What a converter process runs. The single-file executable has its own version of this module (scripts/executable). */
export interface ProcessLimits {
  readonly heapMib: number;
  readonly semiSpaceMib: number;
  readonly stackKib: number;
}

export interface ConverterProgram {
  readonly module: string | URL;
  readonly args: readonly string[];
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Sources in a checkout, compiled code in an installed package. */
const PROCESS_MAIN = new URL(
  import.meta.url.endsWith('.ts') ? './process-main.ts' : './process-main.js',
  import.meta.url,
);

export const converterProgram = ({ heapMib, semiSpaceMib, stackKib }: ProcessLimits): ConverterProgram => ({
  module: PROCESS_MAIN,
  args: [],
  execArgv: [
    `--max-old-space-size=${heapMib}`,
    `--max-semi-space-size=${semiSpaceMib}`,
    `--stack-size=${stackKib}`,
  ],
  env: {},
});
