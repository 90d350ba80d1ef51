/** Records the plans of statements: each is run with EXPLAIN ANALYZE first. */
import { onTestFinished } from 'vitest';
import { openDatabase, type Pool } from '../../src/postgres/database.ts';
import { createTestDatabase } from './database.ts';

/** Creates a database for one test, with one connection per purpose, whose plans are examined. */
export async function openForPlans() {
  const database = await createTestDatabase();
  const connections = openDatabase({
    connectionString: database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(async () => {
    await connections.close();
    await database.drop();
  });
  return { database, connections };
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

export interface Visited {
  /** `Index Scan deliveries_20261109`, of each node that read rows of a table. */
  readonly scan: string;
  readonly table: string;
  readonly rows: number;
}

export interface Watched {
  readonly pool: Pool;
  /**
   * For all statements since the last call: which rows were read and how, and the largest number of rows in one sort.
   */
  take(): { visited: Visited[]; sorted: number };
}

export function watchPlans(real: Pool): Watched {
  let nodes: PlanNode[] = [];
  const query = async (statement: string | { text: string; values?: unknown[] }, parameters?: unknown[]) => {
    const { text, values } =
      typeof statement === 'string' ? { text: statement, values: parameters ?? [] } : statement;
    const { rows } = await real.query(`explain (analyze, timing off, format json) ${text}`, values);
    nodes.push(...flatten(rows[0]['QUERY PLAN'][0].Plan));
    return real.query(text, values);
  };
  return {
    pool: { query } as unknown as Pool,
    take() {
      const seen = nodes;
      nodes = [];
      return {
        visited: seen
          .filter((node) => node['Relation Name'] !== undefined)
          .map((node) => ({
            scan: `${node['Node Type']} ${node['Relation Name']}`,
            table: node['Relation Name']!.replace(/_\d{8}$/, ''),
            rows: rowsRead(node),
          })),
        sorted: Math.max(0, ...seen.filter((node) => node['Node Type'] === 'Sort').map(rowsSorted)),
      };
    },
  };
}

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];

const rowsRead = (node: PlanNode): number =>
  (node['Actual Rows'] +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0)) *
  node['Actual Loops'];

const rowsSorted = ({ Plans: [input] = [] }: PlanNode): number => (input === undefined ? 0 : rowsRead(input));
