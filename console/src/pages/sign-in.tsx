import { type FormEvent, useState } from 'react';
import { asApiError } from '../api/query.ts';
import { signIn } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/fields.tsx';
import { Logo } from '../ui/icons.tsx';
import { Notice } from '../ui/notice.tsx';
import { usePageTitle } from '../ui/page-title.ts';

export function SignIn({ notice, hasSingleSignOn }: { notice: string | null; hasSingleSignOn: boolean }) {
  const [key, setKey] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(notice);
  usePageTitle('Sign in');
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(key.trim());
    } catch (failure) {
      const problem = asApiError(failure);
      setError(problem.status === 401 ? 'This key is unknown or was revoked.' : problem.message);
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
