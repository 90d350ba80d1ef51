export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels?: readonly string[];
  /**
   * By default each process reports its own part, and the sum is the total. `database`: a value of the whole database, which only the
   * process that owns shard 0 reports.
   */
  readonly scope?: 'database';
}
