/** What authenticates Posthorn to the receiver: headers, credentials, a client certificate. */
import type { FieldError } from '../api/client.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { findFieldError, SelectField, TextArea, TextField } from '../ui/fields.tsx';
import { Notice } from '../ui/notice.tsx';
import { AUTH_FIELDS, type AuthDraft, type Draft, type TlsDraft } from './endpoint-draft.ts';

const AUTH_KINDS = [
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
const SECRET_FIELDS = new Set(['password', 'token', 'client_secret']);

interface CredentialFieldsProps {
  draft: Draft;
  onChange: (changes: Partial<Draft>) => void;
  errors: readonly FieldError[];
}

export function CredentialFields({ draft, onChange, errors }: CredentialFieldsProps) {
  const { auth, tls } = draft;
  const changeTls = (changes: Partial<TlsDraft>): void => onChange({ tls: { ...tls, ...changes } });
  return (
    <>
      <HeaderPairs
        headers={draft.headers}
        onChange={(newHeaders) => onChange({ headers: newHeaders })}
        error={findFieldError(errors, 'headers')}
      />
      <TextField
        className="wide"
        label="Headers without secrets"
        mono
        value={draft.plain_headers}
        onChange={(plain_headers) => onChange({ plain_headers })}
        placeholder="x-env, x-region"
        hint="Names of headers whose values everyone who may see the endpoint can read. All others are shown only to keys that may read secrets."
        error={findFieldError(errors, 'plain_headers')}
      />
      <SelectField
        className="wide"
        label="Authentication"
        options={AUTH_KINDS}
        value={auth.type}
        onChange={(type) => onChange({ auth: { ...auth, type } })}
        error={findFieldError(errors, 'auth')}
      />
      {AUTH_FIELDS[auth.type].map((name) => (
        <TextField
          key={name}
          label={LABELS[name]}
          type={SECRET_FIELDS.has(name) ? 'password' : 'text'}
          value={auth[name]}
          onChange={(value) => onChange({ auth: { ...auth, [name]: value } })}
          error={findFieldError(errors, `auth.${name}`)}
        />
      ))}
      <TextArea
        className="wide"
        rows={3}
        label="Client certificate (PEM)"
        value={tls.cert}
        onChange={(cert) => changeTls({ cert })}
        error={findFieldError(errors, 'tls')}
        placeholder="-----BEGIN CERTIFICATE-----"
      />
      <TextArea
        rows={3}
        label="Private key of the certificate (PEM)"
        value={tls.key}
        onChange={(key) => changeTls({ key })}
        error={findFieldError(errors, 'tls.key')}
      />
      <TextArea
        rows={3}
        label="CA certificate of the receiver (PEM)"
        value={tls.ca}
        onChange={(ca) => changeTls({ ca })}
        error={findFieldError(errors, 'tls.ca')}
        hint="If empty, Posthorn trusts the public authorities."
      />
    </>
  );
}

function HeaderPairs({
  headers,
  onChange,
  error,
}: {
  headers: Draft['headers'];
  onChange: (headers: Draft['headers']) => void;
  error: string | undefined;
}) {
  const { canEditEndpoints } = usePermissions();
  const changePair = (index: number, pair: readonly [string, string]): void =>
    onChange(headers.map((each, i) => (i === index ? pair : each)));
  return (
    <div className="field wide">
      <span className="field-label">Headers</span>
      {headers.map(([name, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the name cannot be the key while the user types it
        <div className="pairs" key={index}>
          <input
            className="input mono"
            aria-label={`Name of header ${index + 1}`}
            placeholder="x-team"
            value={name}
            onChange={(event) => changePair(index, [event.target.value, value])}
          />
          <input
            className="input mono"
            aria-label={`Value of header ${index + 1}`}
            value={value}
            onChange={(event) => changePair(index, [name, event.target.value])}
          />
          {canEditEndpoints && (
            <Button
              icon="cross"
              kind="quiet"
              label={`Remove header ${index + 1}`}
              onClick={() => onChange(headers.filter((_, i) => i !== index))}
            />
          )}
        </div>
      ))}
      {error !== undefined && <Notice tone="bad">{error}</Notice>}
      {canEditEndpoints && (
        <div>
          <Button kind="small" icon="plus" onClick={() => onChange([...headers, ['', '']])}>
            Add header
          </Button>
        </div>
      )}
    </div>
  );
}
