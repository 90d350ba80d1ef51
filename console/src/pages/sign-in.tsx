import { type FormEvent, useState } from 'react';
import { asApiError } from '../api/query.ts';
import { isPortal, signInWithKey } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { TextField } from '../ui/fields.tsx';
import { Logo } from '../ui/icons.tsx';
import { Notice } from '../ui/notice.tsx';
import { usePageTitle } from '../ui/page-title.ts';

export function SignIn(props: { notice: string | null; hasSingleSignOn: boolean }) {
  return isPortal() ? <PortalEnded /> : <SignInForm {...props} />;
}

/** Its user has no key to sign in with. */
function PortalEnded() {
  usePageTitle('Session ended');
  return (
    <main className="sign-in">
      <div className="sign-in-box card">
        <EmptyState icon="keys" title="This session has ended">
          Open the webhooks portal again from the page that led you here.
        </EmptyState>
      </div>
    </main>
  );
}

function SignInForm({ notice, hasSingleSignOn }: { notice: string | null; hasSingleSignOn: boolean }) {
  const [key, setKey] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(notice);
  usePageTitle('Sign in');
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signInWithKey(key.trim());
    } catch (failure) {
      const problem = asApiError(failure);
      setError(problem.status === 401 ? 'This key is unknown, revoked or expired.' : problem.message);
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <div className="sign-in-box">
        <h1 className="brand">
          <Logo />
          Posthorn
        </h1>
        {hasSingleSignOn && (
          <p style={{ textAlign: 'center' }}>
            <a
              className="button primary"
              href={`/auth/login?return_to=${encodeURIComponent(window.location.pathname)}`}
            >
              Sign in with your organization
            </a>
          </p>
        )}
        <form className="card" onSubmit={(event) => void submit(event)}>
          <TextField
            label="API key"
            type="password"
            mono
            value={key}
            onChange={setKey}
            placeholder="phk_…"
            autoFocus
            hint="Stored in this tab only, until you close it."
          />
          {error !== null && (
            <div role="alert">
              <Notice tone="bad">{error}</Notice>
            </div>
          )}
          <Button type="submit" kind="primary" disabled={isBusy || key.trim() === ''}>
            {isBusy ? 'Signing in…' : 'Sign in'}
          </Button>
        </form>
        <p className="faint small" style={{ textAlign: 'center' }}>
          In development, Posthorn prints the admin key at start and writes it to{' '}
          <code>.posthorn/admin-key</code>.
        </p>
      </div>
    </main>
  );
}
