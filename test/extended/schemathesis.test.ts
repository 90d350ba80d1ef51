/** A fuzzer of others compares the API with its OpenAPI document. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { missingProgram, needs } from '../support/needs.ts';
import { usePosthorn } from '../support/posthorn.ts';

const run = promisify(execFile);
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const CASES = 2000;
const WITHIN_MS = 540_000;
/** The live tail never ends. */
const ENDLESS = '/v1/stream';

describe('Schemathesis', needs(missingProgram('python3')), () => {
  const posthorn = usePosthorn({ env: { POSTHORN_INBOX: 'true' } });

  test(
    `finds nothing in ${CASES} requests: no 5xx, no undocumented answer, no invalid request that is accepted`,
    async (context) => {
      const program = await run(pathOf('../../scripts/install-schemathesis.sh')).then(
        ({ stdout }) => stdout.trim(),
        () => null,
      );
      if (program === null)
        return context.skip('Schemathesis cannot be installed (needs python3-venv and PyPI)');
      const { paths } = (await posthorn.api('GET', '/openapi.json')).body;
      const operations = Object.values(paths as object).flatMap((methods) => Object.keys(methods)).length;
      const options = [
        ...['--config-file', pathOf('./schemathesis.toml'), 'run', `${posthorn.url}/openapi.json`],
        ...['--header', `Authorization: Bearer ${posthorn.key}`, '--checks', 'all'],
        ...['--phases', 'examples,fuzzing', '--max-examples', String(Math.ceil((CASES * 1.2) / operations))],
        ...[
          '--exclude-path',
          ENDLESS,
          '--seed',
          '1',
          '--generation-database',
          'none',
          '--no-shrink',
          '--no-color',
        ],
      ];
      const { output, failed } = await run(program, options, {
        maxBuffer: 64 * 1024 * 1024,
        timeout: WITHIN_MS,
      }).then(
        ({ stdout }) => ({ output: stdout, failed: false }),
        ({ stdout }: { stdout: string }) => ({ output: stdout, failed: true }),
      );
      expect(failed, output.slice(-20_000)).toBe(false);
      const generated = Number(/(\d[\d,]*) generated/.exec(output)?.[1]?.replaceAll(',', ''));
      expect(generated, output.slice(-2000)).toBeGreaterThanOrEqual(CASES);
    },
    WITHIN_MS + 60_000,
  );
});
