/** How Posthorn shows the receiver who it is: headers, a login, a client certificate. */
import type { FieldError } from '../api/client.ts';
import { useMay } from '../api/session.ts';
import { Button, Notice } from '../ui/basics.tsx';
import { errorAt, SelectField, TextArea, TextField } from '../ui/fields.tsx';
import { AUTH_FIELDS, type AuthDraft, type Draft, type TlsDraft } from './endpoint-draft.ts';

const KINDS = [
  ['none', 'None'],
  ['basic', 'Basic: user name and password'],
  ['bearer', 'Bearer: a token'],
  ['oauth2', 'OAuth 2: client credentials'],
] as const;
const LABELS: Record<Exclude<keyof AuthDraft, 'type'>, string> = {
  username: 'User name',
  password: 'Password',
  token: 'Token',
  token_url: 'Token URL',
  client_id: 'Client id',
  client_secret: 'Client secret',
  scope: 'Scope (optional)',
};
const SECRET = new Set(['password', 'token', 'client_secret']);

interface AccessProps {
  draft: Draft;
  set: (changes: Partial<Draft>) => void;
  errors: readonly FieldError[];
}

export function AccessFields({ draft, set, errors }: AccessProps) {
  const { auth, tls } = draft;
  const setTls = (changes: Partial<TlsDraft>): void => set({ tls: { ...tls, ...changes } });
  return (
    <>
      <HeaderPairs
        headers={draft.headers}
        set={(headers) => set({ headers })}
        error={errorAt(errors, 'headers')}
      />
      <SelectField
        className="wide"
        label="Authentication"
        options={KINDS}
        value={auth.type}
        onChange={(type) => set({ auth: { ...auth, type } })}
        error={errorAt(errors, 'auth')}
      />
      {AUTH_FIELDS[auth.type].map((name) => (
        <TextField
          key={name}
          label={LABELS[name]}
          type={SECRET.has(name) ? 'password' : 'text'}
          value={auth[name]}
          onChange={(value) => set({ auth: { ...auth, [name]: value } })}
          error={errorAt(errors, `auth.${name}`)}
        />
      ))}
      <TextArea
        className="wide"
        rows={3}
        label="Client certificate (PEM)"
        value={tls.cert}
        onChange={(cert) => setTls({ cert })}
        error={errorAt(errors, 'tls')}
        placeholder="-----BEGIN CERTIFICATE-----"
      />
      <TextArea
        rows={3}
        label="Its private key (PEM)"
        value={tls.key}
        onChange={(key) => setTls({ key })}
        error={errorAt(errors, 'tls.key')}
      />
      <TextArea
        rows={3}
        label="Authority of the receiver (PEM)"
        value={tls.ca}
        onChange={(ca) => setTls({ ca })}
        error={errorAt(errors, 'tls.ca')}
        hint="Empty: the public ones."
      />
    </>
  );
}

function HeaderPairs({
  headers,
  set,
  error,
}: {
  headers: Draft['headers'];
  set: (headers: Draft['headers']) => void;
  error: string | undefined;
}) {
  const may = useMay();
  const change = (index: number, pair: readonly [string, string]): void =>
    set(headers.map((each, i) => (i === index ? pair : each)));
  return (
    <div className="field wide">
      <span className="field-label">Headers</span>
      {headers.map(([name, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a name is being typed, it cannot be the key
        <div className="pairs" key={index}>
          <input
            className="input mono"
            aria-label={`Name of header ${index + 1}`}
            placeholder="x-team"
            value={name}
            onChange={(event) => change(index, [event.target.value, value])}
          />
          <input
            className="input mono"
            aria-label={`Value of header ${index + 1}`}
            value={value}
            onChange={(event) => change(index, [name, event.target.value])}
          />
          {may.write && (
            <Button
              icon="cross"
              kind="quiet"
              label={`Remove header ${index + 1}`}
              onClick={() => set(headers.filter((_, i) => i !== index))}
            />
          )}
        </div>
      ))}
      {error !== undefined && <Notice tone="bad">{error}</Notice>}
      {may.write && (
        <div>
          <Button kind="small" icon="plus" onClick={() => set([...headers, ['', '']])}>
            Add header
          </Button>
        </div>
      )}
    </div>
  );
}
