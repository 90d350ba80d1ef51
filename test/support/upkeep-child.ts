/** Holds the lock of upkeep, prints "locked", and works until it is killed: `node upkeep-child.ts URL`. */
import { openDatabase } from '../../src/postgres/database.ts';
import { createSecretBox } from '../../src/postgres/secret-box.ts';
import { createPostgresUpkeepStore } from '../../src/postgres/upkeep-store.ts';

const database = openDatabase({
  connectionString: process.argv[2]!,
  apiConnections: 2,
  dispatchConnections: 1,
  onIdleError() {},
});
const store = createPostgresUpkeepStore({
  database,
  ensurePartitions: async () => {},
  secretBox: createSecretBox(Buffer.alloc(32), []),
});
await store.runExclusively(async () => {
  process.stdout.write('locked\n');
  await new Promise(() => setInterval(() => {}, 1_000));
});
