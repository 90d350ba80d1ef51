import type { CreatedKey, Key, NewKey } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { Checkbox, findFieldError, SelectField, TextField } from '../ui/fields.tsx';

const SCOPES = [
  ['tenant', 'Tenant: read and write for one tenant'],
  ['read', 'Read-only: for one tenant or all'],
  ['admin', 'Admin: everything'],
] as const;

type AccessScope = NonNullable<Key['scopes']>[number];

const ACCESS_SCOPES: readonly (readonly [AccessScope, string, readonly Key['scope'][]])[] = [
  ['events:publish', 'Publish events', ['admin', 'tenant']],
  ['events:read', 'Read events and payloads', ['admin', 'tenant', 'read']],
  ['deliveries:read', 'Read deliveries and statistics', ['admin', 'tenant', 'read']],
  ['deliveries:replay', 'Replay and discard deliveries', ['admin', 'tenant']],
  ['endpoints:read', 'Read endpoints', ['admin', 'tenant', 'read']],
  ['endpoints:write', 'Change endpoints', ['admin', 'tenant']],
  ['secrets:read', 'Read secrets', ['admin', 'tenant']],
  ['catalogue:read', 'Read event types', ['admin', 'tenant', 'read']],
  ['catalogue:write', 'Change event types', ['admin']],
];

interface CreateKeyDialogProps {
  onClose: () => void;
  onCreated: (key: CreatedKey) => void;
}

export function CreateKeyDialog({ onClose, onCreated }: CreateKeyDialogProps) {
  const { selectedTenant } = useSession();
  const [scope, setScope] = useState<Key['scope']>('tenant');
  const [tenant, setTenant] = useState(selectedTenant ?? '');
  const [description, setDescription] = useState('');
  const [chosen, setChosen] = useState<readonly AccessScope[]>([]);
  const [expiresAt, setExpiresAt] = useState('');
  const [allowedIps, setAllowedIps] = useState('');
  const offered = ACCESS_SCOPES.filter(([, , scopes]) => scopes.includes(scope));
  const scopes = offered.flatMap(([name]) => (chosen.includes(name) ? name : []));
  const ranges = allowedIps.split(/[\s,]+/).filter((range) => range !== '');
  const create = async (): Promise<void> => {
    const body: NewKey = {
      scope,
      ...(scope !== 'admin' && tenant.trim() !== '' && { tenant: tenant.trim() }),
      ...(description !== '' && { description }),
      ...(scopes.length > 0 && { scopes }),
      ...(expiresAt !== '' && { expires_at: new Date(expiresAt).toISOString() }),
      ...(ranges.length > 0 && { allowed_ips: ranges }),
    };
    onCreated(await callApi<CreatedKey>('POST', '/v1/keys', body));
  };
  return (
    <FormDialog title="Create a key" submitLabel="Create key" onClose={onClose} onSubmit={create}>
      {(error) => (
        <>
          <SelectField
            label="Scope"
            value={scope}
            onChange={setScope}
            options={SCOPES}
            error={findFieldError(error?.errors ?? [], 'scope')}
          />
          {scope !== 'admin' && (
            <TextField
              label="Tenant"
              value={tenant}
              onChange={setTenant}
              hint={scope === 'read' ? 'If empty, the key can read all tenants.' : undefined}
              error={findFieldError(error?.errors ?? [], 'tenant')}
            />
          )}
          <TextField
            label="Description"
            value={description}
            onChange={setDescription}
            placeholder="Billing service"
          />
          <fieldset className="field">
            <legend>Allow only</legend>
            {offered.map(([name, label]) => (
              <Checkbox
                key={name}
                checked={chosen.includes(name)}
                onChange={(isChecked) =>
                  setChosen(isChecked ? [...chosen, name] : chosen.filter((each) => each !== name))
                }
              >
                {label}
              </Checkbox>
            ))}
            <div className="field-hint">With nothing selected, the key can do all that its scope allows.</div>
          </fieldset>
          <TextField
            label="Expires at"
            type="datetime-local"
            value={expiresAt}
            onChange={setExpiresAt}
            hint="If empty, the key never expires."
            error={findFieldError(error?.errors ?? [], 'expires_at')}
          />
          <TextField
            label="Allowed IP addresses"
            mono
            value={allowedIps}
            onChange={setAllowedIps}
            placeholder="203.0.113.0/24"
            hint="Addresses or CIDR ranges, separated by commas. If empty, the key works from everywhere."
            error={findFieldError(error?.errors ?? [], 'allowed_ips')}
          />
        </>
      )}
    </FormDialog>
  );
}
