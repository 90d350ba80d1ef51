import { systemClock } from '../../src/domain/clock.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { PostgresNotifier } from '../../src/postgres/notifier.ts';
import { createTestDatabase } from '../support/database.ts';
import { describeNotifier } from './notifier.ts';

describeNotifier('PostgreSQL', async () => {
  const test = await createTestDatabase();
  const databases: Database[] = [];
  return {
    create() {
      const database = openDatabase({
        connectionString: test.url,
        apiConnections: 1,
        dispatchConnections: 1,
        onIdleError: () => {},
      });
      databases.push(database);
      return new PostgresNotifier({ database, clock: systemClock, onProblem: () => {} });
    },
    async breakConnections() {
      await test.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity
          where datname = current_database() and application_name = 'posthorn listen'`,
      );
    },
    async close() {
      await Promise.all(databases.map((database) => database.close()));
      await test.drop();
    },
  };
});
