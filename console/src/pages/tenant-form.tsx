import type { Tenant } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { invalidate } from '../api/query.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { findFieldError, SelectField, TextField } from '../ui/fields.tsx';
import { showToast } from '../ui/toasts.tsx';
import { toNumber, toText } from './draft-values.ts';

const VALIDATION = [
  ['off', 'Off: nothing is checked'],
  ['warn', 'Warn: invalid events are delivered and flagged'],
  ['strict', 'Strict: invalid events and unknown types are refused'],
] as const;

const toDraft = (tenant: Tenant) => ({
  name: tenant.name,
  description: tenant.description,
  perSecond: toText(tenant.ingest_rate_limit?.per_second),
  maxEndpoints: toText(tenant.max_endpoints),
  retentionDays: toText(tenant.retention_days),
  apiVersion: toText(tenant.api_version),
  validation: tenant.validation,
});
type TenantDraft = ReturnType<typeof toDraft>;

const numberOrNull = (text: string): number | string | null => (text.trim() === '' ? null : toNumber(text));

/** The tenant with the changes of the form. The other settings stay, because `PUT` replaces all of them. */
function toBody(tenant: Tenant, draft: TenantDraft): object {
  const { ingest_rate_limit: limit } = tenant;
  const isSameRate = draft.perSecond === toText(limit?.per_second);
  const perSecond = numberOrNull(draft.perSecond);
  return {
    ...tenant,
    name: draft.name,
    description: draft.description,
    ingest_rate_limit: isSameRate ? limit : perSecond === null ? null : { per_second: perSecond },
    max_endpoints: numberOrNull(draft.maxEndpoints),
    retention_days: numberOrNull(draft.retentionDays),
    api_version: draft.apiVersion.trim() === '' ? null : draft.apiVersion.trim(),
    validation: draft.validation,
  };
}

export function TenantForm({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const [draft, setDraft] = useState(() => toDraft(tenant));
  const bind = <Name extends keyof TenantDraft>(name: Name) => ({
    value: draft[name],
    onChange: (value: TenantDraft[Name]) => setDraft((before) => ({ ...before, [name]: value })),
  });
  const save = async (): Promise<void> => {
    await callApi('PUT', `/v1/tenants/${encodeURIComponent(tenant.id)}`, toBody(tenant, draft));
    invalidate('/v1/tenants');
    showToast('Saved');
    onClose();
  };
  return (
    <FormDialog title={`Tenant ${tenant.id}`} submitLabel="Save" wide onClose={onClose} onSubmit={save}>
      {(error) => {
        const errorOf = (path: string) => findFieldError(error?.errors ?? [], path);
        return (
          <div className="form-grid">
            <TextField label="Name" error={errorOf('name')} {...bind('name')} />
            <TextField label="Description" error={errorOf('description')} {...bind('description')} />
            <SelectField
              className="wide"
              label="Validation"
              options={VALIDATION}
              hint="Checks payloads against the catalogue. The validation of an event type outranks it."
              error={errorOf('validation')}
              {...bind('validation')}
            />
            <TextField
              label="API version of new endpoints"
              placeholder="not pinned"
              error={errorOf('api_version')}
              {...bind('apiVersion')}
            />
            <TextField
              label="Publish limit (events per second)"
              placeholder="default"
              error={errorOf('ingest_rate_limit')}
              {...bind('perSecond')}
            />
            <TextField
              label="Endpoint limit"
              placeholder="default"
              error={errorOf('max_endpoints')}
              {...bind('maxEndpoints')}
            />
            <TextField
              label="Days to keep events"
              placeholder="default"
              error={errorOf('retention_days')}
              {...bind('retentionDays')}
            />
          </div>
        );
      }}
    </FormDialog>
  );
}
