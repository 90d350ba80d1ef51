/** Which header each secret of an endpoint signs. */
import type { EndpointSecret, SignatureProfile, SignatureSetting } from '../domain/endpoint.ts';

const DEFAULT_HEADER: Record<SignatureProfile, string> = {
  standard: 'webhook-signature',
  'standard-ed25519': 'webhook-signature',
  hex: 'x-webhook-signature',
  stripe: 'stripe-signature',
  github: 'x-hub-signature-256',
};

const DEFAULT_PREFIX: Record<SignatureProfile, string> = {
  standard: 'v1,',
  'standard-ed25519': 'v1a,',
  hex: 'sha256=',
  stripe: 'v1=',
  github: 'sha256=',
};

/** A signature setting with its defaults filled in. */
export interface SignatureForm {
  readonly profile: SignatureProfile;
  readonly header: string;
  readonly prefix: string;
}

export function signatureForm(setting: SignatureSetting): SignatureForm {
  const custom = typeof setting === 'string' ? null : setting;
  const profile = custom === null ? (setting as SignatureProfile) : custom.profile;
  return {
    profile,
    header: (custom?.header ?? DEFAULT_HEADER[profile]).toLowerCase(),
    prefix: custom?.prefix ?? DEFAULT_PREFIX[profile],
  };
}

/** These profiles have room for one signature in their header. */
export const hasOneSignature = (profile: SignatureProfile): boolean =>
  profile === 'hex' || profile === 'github';

/**
 * Both of these profiles write a list of signatures. Receivers tell the profiles apart by the prefix of each
 * signature.
 */
export const isStandard = (profile: SignatureProfile): boolean =>
  profile === 'standard' || profile === 'standard-ed25519';

type Validity = Pick<EndpointSecret, 'expiresAt' | 'mainFrom'>;

export const isActive = ({ expiresAt }: Validity, nowMs: number): boolean =>
  expiresAt === null || expiresAt > nowMs;

/**
 * The headers of a profile with room for one signature, by secret. `active` is newest first. The newest secret whose
 * `mainFrom` has passed signs the main header, otherwise the oldest secret does. Null: the secret does not sign.
 */
export function headersOfOneSignature(
  header: string,
  active: readonly Validity[],
  nowMs: number,
): (string | null)[] {
  const due = active.findIndex(({ mainFrom }) => mainFrom != null && mainFrom <= nowMs);
  const main = due === -1 ? active.length - 1 : due;
  return active.map((_secret, index) => {
    if (index === main) return header;
    if (index === 0) return `${header}-next`;
    return index === main + 1 ? `${header}-previous` : null;
  });
}

/** The header that each secret signs now. Null: it does not sign. `secrets` is newest first. */
export function signatureHeaders(
  setting: SignatureSetting,
  secrets: readonly Omit<EndpointSecret, 'secret'>[],
  nowMs: number,
): (string | null)[] {
  const own = signatureForm(setting);
  const groups = groupByForm(own, secrets);
  const found = new Map<Omit<EndpointSecret, 'secret'>, string | null>();
  for (const { form, members } of groups) {
    const active = members.filter((secret) => isActive(secret, nowMs));
    const headers = hasOneSignature(form.profile)
      ? headersOfOneSignature(form.header, active, nowMs)
      : active.map(() => form.header);
    active.forEach((secret, index) => {
      const header = headers[index]!;
      const isTaken =
        form !== own && header === own.header && !(isStandard(form.profile) && isStandard(own.profile));
      found.set(secret, isTaken ? `${header}-previous` : header);
    });
  }
  return secrets.map((secret) => found.get(secret) ?? null);
}

/** Groups the secrets by the form in which they sign: the endpoint's form first, then the forms that older secrets have kept. */
export function groupByForm<T extends Pick<EndpointSecret, 'signature'>>(
  own: SignatureForm,
  secrets: readonly T[],
): { readonly form: SignatureForm; readonly members: T[] }[] {
  const groups = new Map<string, { form: SignatureForm; members: T[] }>([
    ['own', { form: own, members: [] }],
  ]);
  for (const secret of secrets) {
    const kept = secret.signature == null ? null : signatureForm(secret.signature);
    const name = kept === null ? 'own' : JSON.stringify(kept);
    const group = groups.get(name) ?? { form: kept!, members: [] };
    group.members.push(secret);
    groups.set(name, group);
  }
  return [...groups.values()];
}
