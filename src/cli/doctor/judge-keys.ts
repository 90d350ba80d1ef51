import type { SealedSecret } from '../../postgres/queries/inspect.ts';
import { createSecretBox } from '../../postgres/secret-box.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

export interface Keys {
  readonly adminKey: string | null;
  readonly encryptionKey: Buffer | null;
  readonly previousEncryptionKeys: readonly Buffer[];
}

/** `generatedIn`: the directory in which `dev` generates missing keys. Null in `serve`. */
export function judgeKeys({ adminKey, encryptionKey }: Keys, generatedIn: string | null): Finding {
  const check = 'Keys';
  const missing = [
    ...(adminKey === null ? ['POSTHORN_ADMIN_KEY'] : []),
    ...(encryptionKey === null ? ['POSTHORN_ENCRYPTION_KEY'] : []),
  ];
  if (missing.length === 0) return ok(check, 'admin key and encryption key are set');
  if (generatedIn !== null)
    return ok(
      check,
      `${missing.join(' and ')} not set: \`posthorn dev\` generates and stores them in ${generatedIn}`,
    );
  return problem(
    check,
    `${missing.join(' and ')} not set: \`posthorn serve\` refuses to start.`,
    'Generate them with `echo "phk_$(openssl rand -hex 32)"` and `openssl rand -base64 32`. All processes need the same keys.',
  );
}

/** Checks that the configured keys can decrypt the stored secrets. */
export function judgeSecrets(keys: Keys, sealed: readonly SealedSecret[]): Finding {
  const check = 'Secrets';
  const total = sealed.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return ok(check, 'none are stored yet');
  if (keys.encryptionKey === null)
    return problem(
      check,
      `${total} are stored, but no encryption key is set to decrypt them.`,
      'Set POSTHORN_ENCRYPTION_KEY to the key that was used before.',
    );
  const box = createSecretBox(keys.encryptionKey, keys.previousEncryptionKeys);
  const undecryptable = sealed.filter((secret) => {
    try {
      box.open(secret, secret.endpointId);
      return false;
    } catch {
      return true;
    }
  });
  if (undecryptable.length > 0) {
    const list = undecryptable.map(({ keyId, count }) => `${count} encrypted with key ${keyId}`).join(', ');
    return problem(
      check,
      `Of ${total}, some cannot be decrypted: ${list}. The configured key is ${box.keyId}.`,
      'Set POSTHORN_ENCRYPTION_KEY to the key that was used before, or add that key to POSTHORN_PREVIOUS_ENCRYPTION_KEYS.',
    );
  }
  const old = sealed.filter(({ keyId }) => keyId !== box.keyId);
  if (old.length > 0)
    return warning(
      check,
      `All ${total} can be decrypted, but ${old.reduce((sum, { count }) => sum + count, 0)} need a previous key.`,
      'Run `posthorn rotate-encryption-key`; afterwards you can remove the previous keys.',
    );
  return ok(check, `all ${total} can be decrypted with the configured key`);
}
