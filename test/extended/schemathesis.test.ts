/** A fuzzer of others compares the API with its OpenAPI document. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { missingProgram, needs } from '../support/needs.ts';
import { usePosthorn } from '../support/posthorn.ts';

const run = promisify(execFile);
const CASES = 2000;
const WITHIN_MS = 540_000;
/** The live tail never ends. */
const ENDLESS = '/v1/stream';
/** A batch is answered 202 even if some of its events are invalid: each of these has its own problem in the answer. */
const BATCH = 'POST /v1/events/batch';

/**
 * Statuses that a request which matches the document may get, if the operation documents them: a cursor that is not of
 * this list (400), an object that does not exist (404), an object in another state or a used idempotency key (409).
 */
const DEPENDS_ON_STATE = ['400', '404', '409'];

/** Operations with a rule that the document cannot express: such a request is refused with 422. */
const MORE_RULES: Readonly<Record<string, string>> = {
  'DELETE /v1/tenants/{id}': '`confirm` must be the id',
  'GET /v1/endpoints/{id}/stats': '`since` must be before `until`',
  'GET /v1/stats': '`since` must be before `until`',
  'GET /v1/events': '`where` is a path and a value',
  'PATCH /v1/endpoints/{id}': 'URLs, filters, settings that exclude each other',
  'POST /v1/endpoints': 'URLs, filters, settings that exclude each other',
  'POST /v1/endpoints/{id}/preview': 'versions of the catalogue',
  'POST /v1/endpoints/{id}/replay': '`since` must be before `until`',
  'POST /v1/endpoints/{id}/rotate-secret': 'the length of the secret in bytes',
  'POST /v1/endpoints/{id}/test': 'the schema of the event type',
  'PATCH /v1/keys/{id}': '`expires_at` must be in the future',
  'POST /v1/keys': 'a tenant key needs a tenant',
  'POST /v1/archive/restore': 'either `event_id` or `day`',
  'POST /v1/dead-letters/discard': '`since` must be before `until`',
  'POST /v1/dead-letters/replay': '`since` must be before `until`',
  'POST /v1/event-types/{name}/try': 'versions of the catalogue',
  'POST /v1/event-types/{name}/versions/{version}/check': 'dates that exist',
  'PUT /v1/event-types/{name}': 'the example matches the schema',
  'PUT /v1/event-types/{name}/versions/{version}': 'dates that exist, the example matches the schema',
  'POST /v1/events': 'endpoints that exist, the schema of the event type',
  'POST /v1/events/{id}/replay': 'endpoints that got the event',
  'POST /v1/filters/count': 'the syntax of filters',
  'POST /v1/filters/try': 'the syntax of filters',
  'POST /v1/notifiers': 'URLs, settings that exclude each other',
  'POST /v1/shaping/estimate': 'settings that exclude each other',
  'PUT /v1/tenants/{id}': 'dates that exist',
};

/** Operations with a limit of their own. */
const RATE_LIMITED = ['POST /v1/notifiers/{id}/test'];

type Paths = Readonly<Record<string, Readonly<Record<string, { responses: object }>>>>;

/** All checks are on. For each operation, a valid request may only get a status that the document gives a reason for. */
function writeConfiguration(paths: Paths): string {
  const operations = Object.entries(paths).flatMap(([url, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => ({
      name: `${method.toUpperCase()} ${url}`,
      documented: Object.keys(responses),
    })),
  );
  const names = new Set(operations.map(({ name }) => name));
  expect(Object.keys(MORE_RULES).filter((name) => !names.has(name))).toEqual([]);
  return operations
    .map(({ name, documented }) => {
      const allowed = documented.filter((status) => DEPENDS_ON_STATE.includes(status));
      if (name in MORE_RULES) allowed.push('422');
      if (RATE_LIMITED.includes(name)) allowed.push('429');
      return [
        '[[operations]]',
        `include-name = ${JSON.stringify(name)}`,
        `checks.positive_data_acceptance.expected-statuses = ${JSON.stringify(['2xx', '3xx', ...allowed])}`,
        // `--checks all` outranks a check that is switched off here, so send it valid requests only.
        ...(name === BATCH ? ['generation.mode = "positive"'] : []),
      ].join('\n');
    })
    .join('\n\n');
}

describe('Schemathesis', needs(missingProgram('python3')), () => {
  const posthorn = usePosthorn({ env: { POSTHORN_INBOX: 'true' } });

  test(
    `finds nothing in ${CASES} requests: no 5xx, no undocumented answer, no invalid request that is accepted, no valid one that is refused`,
    async (context) => {
      const program = await run(
        fileURLToPath(new URL('../../scripts/install-schemathesis.sh', import.meta.url)),
      ).then(
        ({ stdout }) => stdout.trim(),
        () => null,
      );
      if (program === null)
        return context.skip('Schemathesis cannot be installed (needs python3-venv and PyPI)');
      const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-schemathesis-'));
      onTestFinished(() => rm(directory, { recursive: true, force: true }));
      const configuration = path.join(directory, 'schemathesis.toml');
      await writeFile(
        configuration,
        writeConfiguration((await posthorn.api('GET', '/openapi.json')).body.paths),
      );
      const options = [
        ...['--config-file', configuration, 'run', `${posthorn.url}/openapi.json`],
        ...['--header', `Authorization: Bearer ${posthorn.key}`, '--checks', 'all'],
        ...['--phases', 'examples,coverage,fuzzing', '--max-examples', '10', '--exclude-path', ENDLESS],
        ...['--seed', '1', '--generation-database', 'none', '--no-shrink', '--no-color'],
      ];
      const { output, failed } = await run(program, options, {
        cwd: directory,
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
