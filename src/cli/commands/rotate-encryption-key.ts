import { type Config, ConfigError, loadConfig } from '../../config/index.ts';
import { rotateEncryptionKey as rotate } from '../../manage/encryption-key.ts';
import { createSecretBox } from '../../postgres/secret-box.ts';
import type { Command } from '../command.ts';
import { explainError } from '../explain-error.ts';
import { print, printError } from '../print.ts';

export const rotateEncryptionKey: Command = {
  name: 'rotate-encryption-key',
  summary: 'encrypt every stored secret again with the current encryption key',
  usage: 'posthorn rotate-encryption-key [--database-url postgres://…]',
  about: `Decrypts every secret in DATABASE_URL with the key that it was encrypted with, and encrypts it with
POSTHORN_ENCRYPTION_KEY. Servers may run meanwhile if they know both keys. To change from key A to key B:
  1. Start the servers with POSTHORN_ENCRYPTION_KEY=A and POSTHORN_PREVIOUS_ENCRYPTION_KEYS=B: all of them can read both.
     (With a single process, begin with step 2.)
  2. Start them with POSTHORN_ENCRYPTION_KEY=B and POSTHORN_PREVIOUS_ENCRYPTION_KEYS=A: new secrets use B.
  3. Run this command with the same two settings.
  4. Start the servers with B alone. Keep A as long as you keep backups from before.
You can interrupt the command and run it again at any time.`,
  async run({ flags }) {
    const config = loadConfig({ mode: 'serve', env: process.env, flags });
    const { databaseUrl, encryptionKey } = requireSettings(config);
    const [{ openDatabase }, { checkRoute }] = await Promise.all([
      import('../../postgres/database.ts'),
      import('../../postgres/pooler.ts'),
    ]);
    const database = openDatabase({
      connectionString: databaseUrl,
      directConnectionString: config.directDatabaseUrl,
      apiConnections: 1,
      dispatchConnections: 1,
      onIdleError: () => {},
    });
    try {
      await checkRoute({ databaseUrl, directDatabaseUrl: config.directDatabaseUrl });
      const box = createSecretBox(encryptionKey, config.previousEncryptionKeys);
      const done = await rotate(database.pool('api'), box, (encrypted, total) =>
        print(`${encrypted} of ${total}`),
      );
      print(
        done === 0
          ? `Every secret is already encrypted with key ${box.keyId}.`
          : `Encrypted ${done} secrets with key ${box.keyId}. No other key is needed any more.`,
      );
      return 0;
    } catch (error) {
      const explanation = explainError(error, config);
      if (explanation === null) throw error;
      printError(explanation.message);
      return explanation.exitCode;
    } finally {
      await database.close();
    }
  },
};

function requireSettings({ databaseUrl, encryptionKey }: Config) {
  const missing = (name: string, message: string) =>
    new ConfigError([{ name, message: `${name} ${message}` }]);
  if (databaseUrl === null)
    throw missing('DATABASE_URL', 'is not set. Set it to the database whose secrets to encrypt again.');
  if (encryptionKey === null)
    throw missing(
      'POSTHORN_ENCRYPTION_KEY',
      'is not set. Set it to the new key, which encrypts the secrets.',
    );
  return { databaseUrl, encryptionKey };
}
