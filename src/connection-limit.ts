/**
 * Limits the connections to the API, so that its clients cannot use up the descriptors that deliveries and the
 * database need.
 */
import { readFileSync } from 'node:fs';
import type { Config } from './config/index.ts';

type Needs = Pick<Config, 'role' | 'maxSockets' | 'databasePoolSize'>;

/** Idle connections to receivers that are kept open (`maxIdleSockets` of the deliverer). */
const IDLE_SOCKETS = 1024;
/** Connections to the database besides those for API queries, standard streams, files, sockets between processes. */
const OTHER_DESCRIPTORS = 80;
/** Requests that an API process sends: challenges and test events. */
const API_REQUESTS = 100;

/**
 * Returns how many connections the API may accept. Reserves what the process needs, but at most three quarters of its
 * descriptors.
 */
export function connectionLimit(descriptors: number, needs: Needs): number {
  const requests = needs.role === 'api' ? API_REQUESTS : needs.maxSockets + IDLE_SOCKETS;
  const reserved = needs.databasePoolSize + OTHER_DESCRIPTORS + requests;
  return Math.max(1, descriptors - Math.min(reserved, Math.floor(descriptors * 0.75)));
}

/** Returns how many descriptors this process may open. Null: no limit, or it is not known on this system. */
export function readDescriptorLimit(): number | null {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}
