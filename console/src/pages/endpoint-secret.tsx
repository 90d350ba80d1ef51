import type { CurrentSecret, Endpoint } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Notice } from '../ui/notice.tsx';
import { At } from '../ui/time.tsx';
import { showError, showToast } from '../ui/toasts.tsx';
import { RotateSecretDialog } from './rotate-secret-dialog.tsx';

/**
 * The signing secret. It is fetched only when the user reveals it, and not cached. An endpoint with a public key shows that:
 * the server keeps the private key.
 */
export function SecretCard({ endpoint, onChanged }: { endpoint: Endpoint; onChanged: () => void }) {
  const { canEditEndpoints, may } = usePermissions();
  const [secret, setSecret] = useState<string | null>(null);
  const [isRotating, setRotating] = useState(false);
  const canReveal = endpoint.public_key === null && may('secrets:read');
  if (!canEditEndpoints && !canReveal) return null;
  const path = `/v1/endpoints/${endpoint.id}`;
  const { public_key: publicKey } = endpoint;
  const reveal = async (): Promise<void> => {
    try {
      setSecret((await callApi<CurrentSecret>('GET', `${path}/secret`)).secret);
    } catch (error) {
      showError(error);
    }
  };
  const revokePrevious = async (): Promise<void> => {
    try {
      await callApi('DELETE', `${path}/secrets/previous`);
      showToast('Old secret revoked');
      onChanged();
      if (secret !== null) await reveal();
    } catch (error) {
      showError(error);
    }
  };
  return (
    <Card
      title={publicKey === null ? 'Signing secret' : 'Signing key'}
      actions={
        <div className="row">
          {canReveal && (
            <Button
              kind="small"
              icon="eye"
              onClick={() => (secret === null ? void reveal() : setSecret(null))}
            >
              {secret === null ? 'Reveal' : 'Hide'}
            </Button>
          )}
          {canEditEndpoints && (
            <Button kind="small" icon="replay" onClick={() => setRotating(true)}>
              Rotate…
            </Button>
          )}
        </div>
      }
    >
      <div className="card-body stack">
        <div className="row">
          {publicKey !== null ? (
            <CopyButton text={publicKey} label="the public key" />
          ) : secret === null ? (
            <code className="faint">whsec_••••••••••••••••••••••••</code>
          ) : (
            <CopyButton text={secret} label="the secret" />
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
            {canEditEndpoints && (
              <Button kind="small" onClick={() => void revokePrevious()}>
                Revoke the old secret
              </Button>
            )}
          </Notice>
        )}
      </div>
      {isRotating && (
        <RotateSecretDialog
          endpoint={endpoint}
          onClose={() => setRotating(false)}
          onRotated={(rotated) => {
            setRotating(false);
            setSecret(rotated.secret);
            onChanged();
            showToast(
              rotated.secret === null
                ? 'Key rotated. The new public key is shown.'
                : 'Secret rotated. The new secret is shown.',
            );
          }}
        />
      )}
    </Card>
  );
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
          now, and the main header from <At at={secret.switch_at} /> on
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
