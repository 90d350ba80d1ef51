import { useState } from 'react';
import { call } from '../api/client.ts';
import { useMay } from '../api/session.ts';
import type { Endpoint } from '../api/types.ts';
import { Button, Card, Copy, Notice } from '../ui/basics.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { errorAt, SelectField, TextField } from '../ui/fields.tsx';
import { At } from '../ui/time.tsx';
import { toast, toastError } from '../ui/toasts.tsx';

interface Secret {
  readonly secret: string;
  readonly public_key?: string;
  readonly previous?: { readonly created_at: string; readonly expires_at: string | null }[];
  readonly previous_expires_at?: string | null;
}

/** Only fetched when somebody asks to see it, and never kept. */
export function SecretCard({ endpoint }: { endpoint: Endpoint }) {
  const may = useMay();
  const [secret, setSecret] = useState<Secret | null>(null);
  const [rotating, setRotating] = useState(false);
  if (!may.write) return null;
  const path = `/v1/endpoints/${endpoint.id}`;
  const reveal = async (): Promise<void> => {
    try {
      setSecret(await call<Secret>('GET', `${path}/secret`));
    } catch (error) {
      toastError(error);
    }
  };
  const expires =
    secret?.previous_expires_at ??
    secret?.previous?.find(({ expires_at }) => expires_at !== null)?.expires_at;
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
            <Copy text={secret.public_key ?? secret.secret} label="the secret" />
          )}
        </div>
        {expires != null && (
          <Notice tone="info" title="Two secrets sign just now">
            Requests carry a signature of the old one too, until <At at={expires} />. When every receiver has
            the new one you can end that sooner.{' '}
            <Button
              kind="small"
              onClick={() =>
                void call('DELETE', `${path}/secrets/previous`).then(() => {
                  toast('The old secret signs no more');
                  return reveal();
                }, toastError)
              }
            >
              Revoke the old one now
            </Button>
          </Notice>
        )}
      </div>
      {rotating && (
        <RotateDialog
          path={path}
          onClose={() => setRotating(false)}
          onRotated={(rotated) => {
            setRotating(false);
            setSecret(rotated);
            toast('Rotated: the new secret is shown');
          }}
        />
      )}
    </Card>
  );
}

const OVERLAPS = [
  ['', 'The usual time (24 hours unless the operator chose another)'],
  ['3600', '1 hour'],
  ['86400', '24 hours'],
  ['604800', '7 days'],
  ['0', 'None: the old one stops at once'],
] as const;

function RotateDialog({
  path,
  onClose,
  onRotated,
}: {
  path: string;
  onClose: () => void;
  onRotated: (secret: Secret) => void;
}) {
  const [overlap, setOverlap] = useState<string>('');
  const [own, setOwn] = useState('');
  return (
    <FormDialog
      title="Rotate the signing secret"
      submit="Rotate secret"
      onClose={onClose}
      onSubmit={async () =>
        onRotated(
          await call<Secret>('POST', `${path}/rotate-secret`, {
            ...(overlap !== '' && { overlap_seconds: Number(overlap) }),
            ...(own.trim() !== '' && { secret: own.trim() }),
          }),
        )
      }
    >
      {(error) => (
        <>
          <p className="soft">
            A new secret signs from now on. During the overlap every request carries a signature of both, so
            receivers can change over one by one and nothing is refused.
          </p>
          <SelectField
            label="Overlap"
            value={overlap}
            onChange={setOverlap}
            options={OVERLAPS}
            error={errorAt(error?.errors ?? [], 'overlap_seconds')}
          />
          {overlap === '0' && (
            <Notice tone="warn">
              Receivers that still have the old secret refuse everything from this moment.
            </Notice>
          )}
          <TextField
            label="Secret of your own (optional)"
            mono
            value={own}
            onChange={setOwn}
            placeholder="whsec_…"
            hint="Empty: Posthorn makes one."
            error={errorAt(error?.errors ?? [], 'secret')}
          />
        </>
      )}
    </FormDialog>
  );
}
