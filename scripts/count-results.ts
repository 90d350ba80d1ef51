/**
 * Prints "N passed, N failed" from JSON reports of test runs: node scripts/count-results.ts (<report> <exit status>)...
 * Failures outside of tests (types, lint, a file that cannot be loaded, an unhandled error) count as failed too, so that a
 * failed run never says "0 failed".
 */
import { readFile } from 'node:fs/promises';

export interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

export function countResults(report: Report | null, exitStatus: number): { passed: number; failed: number } {
  const unloadable = report?.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
  );
  const failed = (report?.numFailedTests ?? 0) + (unloadable?.length ?? 0);
  return { passed: report?.numPassedTests ?? 0, failed: exitStatus === 0 ? failed : Math.max(failed, 1) };
}

async function readReport(file: string): Promise<Report | null> {
  // Types and lint run first. If they fail, no test runs and there is no report.
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.trim() === '' ? null : (JSON.parse(text) as Report);
}

if (import.meta.main) {
  const total = { passed: 0, failed: 0 };
  for (let argument = 2; argument < process.argv.length; argument += 2) {
    const [file = '', exitStatus = '1'] = process.argv.slice(argument);
    const { passed, failed } = countResults(await readReport(file), Number(exitStatus));
    total.passed += passed;
    total.failed += failed;
  }
  console.log(`${total.passed} passed, ${total.failed} failed`);
}
