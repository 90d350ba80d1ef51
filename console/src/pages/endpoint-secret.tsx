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
  /** When the previous secret stops signing. Null if only one signs. */
  readonly previousExpiresAt: string | null;
}

/** The signing secret. It is fetched only when the user reveals it, and not cached. */
export function SecretCard({ endpoint }: { endpoint: Endpoint }) {
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
        {secret !== null && secret.previousExpiresAt !== null && (
          <Notice tone="info" title="Two secrets sign each request">
            The old secret signs until <At at={secret.previousExpiresAt} />. Revoke it sooner when every
            receiver has the new one.{' '}
            <Button kind="small" onClick={() => void revokePrevious()}>
              Revoke the old secret
            </Button>
          </Notice>
        )}
      </div>
      {isRotating && (
        <RotateDialog
          path={path}
          onClose={() => setRotating(false)}
          onRotated={(rotated) => {
            setRotating(false);
            setSecret(toRevealed(rotated));
            showToast('Secret rotated. The new secret is shown.');
          }}
        />
      )}
    </Card>
  );
}

function toRevealed(secret: CurrentSecret | RotatedSecret): RevealedSecret {
  const previousExpiresAt =
    'previous' in secret
      ? (secret.previous.find(({ expires_at }) => expires_at !== null)?.expires_at ?? null)
      : secret.previous_expires_at;
  // The server keeps the private key of an endpoint with a public key.
  return { verifier: secret.public_key ?? secret.secret ?? '', previousExpiresAt };
}

const OVERLAPS = [
  ['', 'Server default (24 hours unless configured)'],
  ['3600', '1 hour'],
  ['86400', '24 hours'],
  ['604800', '7 days'],
  ['0', 'None: the old secret stops now'],
] as const;

interface RotateDialogProps {
  path: string;
  onClose: () => void;
  onRotated: (secret: RotatedSecret) => void;
}

function RotateDialog({ path, onClose, onRotated }: RotateDialogProps) {
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
            ...(overlap !== '' && { overlap_seconds: Number(overlap) }),
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
