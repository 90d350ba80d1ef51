/**
 * Runs around every end-to-end test file: when its last hook is done, no process, server, socket or timer that it
 * started may be left. A leaked worker would disturb other tests; a leaked socket hides a server that cannot stop.
 */
import { Socket } from 'node:net';
import { afterAll } from 'vitest';
import { eventually } from './eventually.ts';
import { endLeftoverProcesses } from './processes.ts';

/**
 * Node's names of the counted resources. Connections to PostgreSQL are pipes here, and so are those of the test runner,
 * which do not change.
 */
const COUNTED = new Set([
  'ProcessWrap',
  'TCPServerWrap',
  'TCPSocketWrap',
  'PipeServerWrap',
  'PipeWrap',
  'TLSWrap',
  'UDPWrap',
  'Timeout',
  'Immediate',
]);

const before = count();

// Registered before those of the test file, so it runs after them.
afterAll(async () => {
  const processes = await endLeftoverProcesses();
  if (processes.length > 0) throw new Error(`Processes were left running:\n${processes.join('\n')}`);
  // Closed resources disappear after one or two turns of the event loop, and the test runner has a timer of 100 ms.
  await eventually('everything that the tests opened is closed', () => surplus().length === 0, {
    timeoutMs: 5000,
    saw: surplus,
  });
});

function count(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (COUNTED.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

function surplus(): string[] {
  return [...count()].flatMap(([kind, number]) => {
    const surplus = number - (before.get(kind) ?? 0);
    return surplus > 0 ? [`${surplus} × ${kind}${kind === 'TCPSocketWrap' ? ` of ${sockets()}` : ''}`] : [];
  });
}

/** Lists the open sockets by their ports. */
function sockets(): string {
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): unknown[] };
  return handles()
    .filter((handle) => handle instanceof Socket && handle.remotePort !== undefined)
    .map((socket) => {
      const { localPort, remotePort, destroyed, readyState } = socket as Socket;
      return `${localPort} to ${remotePort} (${destroyed ? 'destroyed' : readyState})`;
    })
    .join(', ');
}
