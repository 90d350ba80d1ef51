/** Prints at the end of a run how many tests were skipped and why: "34 skipped: promtool is not installed". */
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';
import './needs.ts';

const WITHOUT_REASON = 'no reason is given';
const FAILED_HOOK = 'a hook of their file or suite failed';

export default class SkipReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // With a filter by title, the other tests are skipped without a reason.
    const isFiltered = this.#vitest?.config.testNamePattern !== undefined;
    const skipped = modules
      .flatMap((module) => [...module.children.allTests('skipped')])
      .map(reasonOf)
      .filter((reason) => !isFiltered || reason !== WITHOUT_REASON);
    for (const line of countReasons(skipped)) this.#vitest?.logger.log(line);
  }
}

/** One line per reason, the most frequent first. */
export function countReasons(reasons: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${count} skipped: ${reason}`);
}

/** What `context.skip(note)` said, or `needs` of the test or of a suite around it. */
function reasonOf(test: TestCase): string {
  const result = test.result();
  if (result.state === 'skipped' && result.note !== undefined) return result.note;
  for (let task: TestCase | TestSuite | TestModule = test; task.type !== 'module'; task = task.parent) {
    const { skipReason } = task.meta();
    if (skipReason !== undefined) return skipReason;
  }
  return test.module.state() === 'failed' ? FAILED_HOOK : WITHOUT_REASON;
}
