import type { CurrentSecret, Endpoint, RotatedSecret } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { findFieldError, SelectField, TextField } from '../ui/fields.tsx';
import { Notice } from '../ui/notice.tsx';
import { At } from '../ui/time.tsx';
import { showError, showToast } from '../ui/toasts.tsx';

interface RevealedSecret {
  /** What receivers verify with: the public key of an Ed25519 secret, otherwise the secret itself. */
  readonly verifier: string;
}

/** The signing secret. It is fetched only when the user reveals it, and not cached. */
export function SecretCard({ endpoint, onChanged }: { endpoint: Endpoint; onChanged: () => void }) {
  const { canWrite } = usePermissions();
  const [secret, setSecret] = useState<RevealedSecret | null>(null);
  const [isRotating, setRotating] = useState(false);
  if (!canWrite) return null;
  const path = `/v1/endpoints/${endpoint.id}`;
  const reveal = async (): Promise<void> => {
    try {
      setSecret(toRevealed(await callApi<CurrentSecret>('GET', `${path}/secret`)));
    } catch (error) {
      showError(error);
    }
  };
  const revokePrevious = async (): Promise<void> => {
    try {
      await callApi('DELETE', `${path}/secrets/previous`);
      showToast('Old secret revoked');
      onChanged();
      await reveal();
    } catch (error) {
      showError(error);
    }
  };
  return (
    <Card
      title="Signing secret"
      actions={
        <div className="row">
          <Button kind="small" icon="eye" onClick={() => (secret === null ? void reveal() : setSecret(null))}>
            {secret === null ? 'Reveal' : 'Hide'}
          </Button>
          <Button kind="small" icon="replay" onClick={() => setRotating(true)}>
            Rotate…
          </Button>
        </div>
      }
    >
      <div className="card-body stack">
        <div className="row">
          {secret === null ? (
            <code className="faint">whsec_••••••••••••••••••••••••</code>
          ) : (
            <CopyButton text={secret.verifier} label="the secret" />
          )}
        </div>
        {endpoint.signing_secrets.length > 1 && (
          <Notice tone="info" title={`${endpoint.signing_secrets.length} secrets sign each request`}>
            <ul>
              {endpoint.signing_secrets.map((each, index) => (
                <SigningSecret key={each.created_at} secret={each} isCurrent={index === 0} />
              ))}
            </ul>
            Revoke the old secret when every receiver has the new one.{' '}
            <Button kind="small" onClick={() => void revokePrevious()}>
              Revoke the old secret
            </Button>
          </Notice>
        )}
      </div>
      {isRotating && (
        <RotateDialog
          path={path}
          hasOneSignature={hasOneSignature(endpoint)}
          onClose={() => setRotating(false)}
          onRotated={(rotated) => {
            setRotating(false);
            setSecret(toRevealed(rotated));
            onChanged();
            showToast('Secret rotated. The new secret is shown.');
          }}
        />
      )}
    </Card>
  );
}

// The server keeps the private key of an endpoint with a public key.
const toRevealed = (secret: CurrentSecret | RotatedSecret): RevealedSecret => ({
  verifier: secret.public_key ?? secret.secret ?? '',
});

/** Whether the header of the endpoint's signature has room for one secret only. */
function hasOneSignature({ signature }: Endpoint): boolean {
  const profile = typeof signature === 'string' ? signature : signature.profile;
  return profile === 'github' || profile === 'hex';
}

interface SigningSecretProps {
  secret: Endpoint['signing_secrets'][number];
  isCurrent: boolean;
}

function SigningSecret({ secret, isCurrent }: SigningSecretProps) {
  return (
    <li>
      {isCurrent ? 'The new secret' : 'The old secret'}, created <At at={secret.created_at} />, signs{' '}
      {secret.header === null ? 'no header' : <code>{secret.header}</code>}
      {secret.switch_at !== null && (
        <>
          {' '}
          and takes the main header over at <At at={secret.switch_at} />
        </>
      )}
      {secret.expires_at !== null ? (
        <>
          {' '}
          until <At at={secret.expires_at} />
        </>
      ) : (
        !isCurrent && ' until you revoke it'
      )}
      .
    </li>
  );
}

const OVERLAPS = [
  ['', 'Server default (24 hours unless configured)'],
  ['3600', '1 hour'],
  ['86400', '24 hours'],
  ['604800', '7 days'],
  ['null', 'Until I revoke the old secret'],
  ['0', 'None: the old secret stops now'],
] as const;

const PRIMARIES = [
  ['old', 'The old secret, until it ends'],
  ['new', 'The new secret, from now on'],
] as const;

interface RotateDialogProps {
  path: string;
  hasOneSignature: boolean;
  onClose: () => void;
  onRotated: (secret: RotatedSecret) => void;
}

function RotateDialog({ path, hasOneSignature, onClose, onRotated }: RotateDialogProps) {
  const [primary, setPrimary] = useState<'old' | 'new'>('old');
  const [overlap, setOverlap] = useState<string>('');
  const [ownSecret, setOwnSecret] = useState('');
  return (
    <FormDialog
      title="Rotate the signing secret"
      submitLabel="Rotate secret"
      onClose={onClose}
      onSubmit={async () =>
        onRotated(
          await callApi<RotatedSecret>('POST', `${path}/rotate-secret`, {
            ...(overlap !== '' && { overlap_seconds: overlap === 'null' ? null : Number(overlap) }),
            ...(hasOneSignature && { primary }),
            ...(ownSecret.trim() !== '' && { secret: ownSecret.trim() }),
          }),
        )
      }
    >
      {(error) => (
        <>
          <p className="soft">
            The new secret signs from now on. During the overlap both secrets sign every request, so you can
            update your receivers one by one.
          </p>
          <SelectField
            label="Overlap"
            value={overlap}
            onChange={setOverlap}
            options={OVERLAPS}
            error={findFieldError(error?.errors ?? [], 'overlap_seconds')}
          />
          {hasOneSignature && (
            <SelectField
              label="Main signature header"
              value={primary}
              onChange={setPrimary}
              options={PRIMARIES}
              hint="This signature has room for one secret. The other one signs another header."
            />
          )}
          {overlap === '0' && (
            <Notice tone="warn">Receivers with the old secret will reject every request from now on.</Notice>
          )}
          <TextField
            label="Your own secret (optional)"
            mono
            value={ownSecret}
            onChange={setOwnSecret}
            placeholder="whsec_…"
            hint="If empty, Posthorn generates one."
            error={findFieldError(error?.errors ?? [], 'secret')}
          />
        </>
      )}
    </FormDialog>
  );
}
