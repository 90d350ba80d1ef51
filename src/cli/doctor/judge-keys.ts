import type { SealedSecret } from '../../postgres/queries/inspect.ts';
import { createSecretBox } from '../../postgres/secret-box.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

export interface Keys {
  readonly adminKey: string | null;
  readonly encryptionKey: Buffer | null;
  readonly previousEncryptionKeys: readonly Buffer[];
}

/** `made`: where `dev` makes and keeps them if they are not given. */
export function judgeKeys({ adminKey, encryptionKey }: Keys, made: string | null): Finding {
  const check = 'Keys';
  const missing = [
    ...(adminKey === null ? ['POSTHORN_ADMIN_KEY'] : []),
    ...(encryptionKey === null ? ['POSTHORN_ENCRYPTION_KEY'] : []),
  ];
  if (missing.length === 0) return ok(check, 'admin key and encryption key are set');
  if (made !== null)
    return ok(check, `${missing.join(' and ')} not set: \`posthorn dev\` makes and keeps them in ${made}`);
  return problem(
    check,
    `${missing.join(' and ')} not set: \`posthorn serve\` refuses to start.`,
    'Make them with `echo "phk_$(openssl rand -hex 32)"` and `openssl rand -base64 32`, the same for every process.',
  );
}

/** Do the keys open what is stored? */
export function judgeSecrets(keys: Keys, sealed: readonly SealedSecret[]): Finding {
  const check = 'Secrets';
  const total = sealed.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return ok(check, 'none are stored yet');
  if (keys.encryptionKey === null)
    return problem(
      check,
      `${total} are stored, and no encryption key is set to open them.`,
      'Set POSTHORN_ENCRYPTION_KEY to the key that was used before.',
    );
  const box = createSecretBox(keys.encryptionKey, keys.previousEncryptionKeys);
  const closed = sealed.filter((secret) => {
    try {
      box.open(secret, secret.endpointId);
      return false;
    } catch {
      return true;
    }
  });
  if (closed.length > 0) {
    const list = closed.map(({ keyId, count }) => `${count} sealed with key ${keyId}`).join(', ');
    return problem(
      check,
      `Of ${total}, some do not open: ${list}. The configured key is ${box.keyId}.`,
      'Set POSTHORN_ENCRYPTION_KEY to the key that was used before, or name that key in POSTHORN_PREVIOUS_ENCRYPTION_KEYS.',
    );
  }
  const old = sealed.filter(({ keyId }) => keyId !== box.keyId);
  if (old.length > 0)
    return warning(
      check,
      `All ${total} open, but ${old.reduce((sum, { count }) => sum + count, 0)} need a previous key.`,
      'Run `posthorn rotate-encryption-key`; then the previous keys can go.',
    );
  return ok(check, `all ${total} open with the configured key`);
}
