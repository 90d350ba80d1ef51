import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/client.ts';
import { signIn } from '../api/session.ts';
import { Button, Notice } from '../ui/basics.tsx';
import { TextField } from '../ui/fields.tsx';
import { Logo } from '../ui/icons.tsx';
import { usePageTitle } from '../ui/title.ts';

export function SignIn({ notice }: { notice: string | null }) {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(notice);
  usePageTitle('Sign in');
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(key.trim());
    } catch (failure) {
      const unknown = failure instanceof ApiError && failure.status === 401;
      setError(
        unknown
          ? 'This key is not known, or it was revoked.'
          : failure instanceof Error
            ? failure.message
            : null,
      );
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
        <form className="card" onSubmit={(event) => void submit(event)}>
          <TextField
            label="API key"
            type="password"
            mono
            value={key}
            onChange={setKey}
            placeholder="phk_…"
            autoFocus
            hint="Kept in this tab only, and forgotten when you close it."
          />
          {error !== null && (
            <div role="alert">
              <Notice tone="bad">{error}</Notice>
            </div>
          )}
          <Button type="submit" kind="primary" disabled={busy || key.trim() === ''}>
            {busy ? 'Signing in…' : 'Sign in'}
          </Button>
        </form>
        <p className="faint small" style={{ textAlign: 'center' }}>
          In development the admin key is printed at the start, and kept in <code>.posthorn/admin-key</code>.
        </p>
      </div>
    </main>
  );
}
