/** The form with every setting of an endpoint. The API validates it; its errors appear at the fields they are about. */
import type { ChangedEndpoint, CreatedEndpoint, Endpoint } from '@posthorn/client';
import { type FormEvent, useState } from 'react';
import { callApi, type FieldError } from '../api/client.ts';
import { asApiError, invalidate } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { navigate } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { plural } from '../ui/format.ts';
import { showToast } from '../ui/toasts.tsx';
import { type Draft, DraftError, toDraft, toPatch, toSettings } from './endpoint-draft.ts';
import { EndpointFields } from './endpoint-fields.tsx';
import { labelField, translateMessage } from './endpoint-labels.ts';
import { EndpointWarnings } from './endpoint-warnings.tsx';
import { NewSecretDialog } from './new-secret-dialog.tsx';

interface FormErrors {
  readonly fields: readonly FieldError[];
  /** For errors that are not about a field. */
  readonly message: string | null;
}

const NO_ERRORS: FormErrors = { fields: [], message: null };

/** Edits the endpoint, or creates one if none is given. */
export function EndpointForm({ endpoint }: { endpoint?: Endpoint }) {
  const { canEditEndpoints, canSeeAllTenants } = usePermissions();
  const { selectedTenant } = useSession();
  const [saved, setSaved] = useState(() => toDraft(endpoint ?? { tenant: selectedTenant ?? '' }));
  const [draft, setDraft] = useState(saved);
  const [errors, setErrors] = useState(NO_ERRORS);
  const [warnings, setWarnings] = useState<ChangedEndpoint['warnings']>([]);
  const [isBusy, setBusy] = useState(false);
  const [created, setCreated] = useState<CreatedEndpoint | null>(null);
  const isChanged = draft !== saved && JSON.stringify(draft) !== JSON.stringify(saved);

  const create = async (): Promise<void> => {
    const settings = buildNewSettings(draft, saved, canSeeAllTenants);
    setCreated(await callApi<CreatedEndpoint>('POST', '/v1/endpoints', settings));
    invalidate('/v1/endpoints', '/v1/stats', '/v1/tenants');
  };
  const update = async (id: string): Promise<void> => {
    const changed = await callApi<ChangedEndpoint>('PATCH', `/v1/endpoints/${id}`, toPatch(saved, draft));
    const updated = toDraft(changed);
    setWarnings(changed.warnings);
    setSaved(updated);
    setDraft(updated);
    invalidate('/v1/endpoints');
    showToast('Saved');
  };
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setErrors(NO_ERRORS);
    setWarnings([]);
    try {
      await (endpoint === undefined ? create() : update(endpoint.id));
    } catch (error) {
      setErrors(toFormErrors(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <form className="card" onSubmit={(event) => void submit(event)}>
      <fieldset disabled={!canEditEndpoints} style={{ border: 0, padding: 0, margin: 0, minWidth: 0 }}>
        <EndpointFields
          draft={draft}
          onChange={(changes) => setDraft((before) => ({ ...before, ...changes }))}
          errors={errors.fields}
          isNew={endpoint === undefined}
          endpointId={endpoint?.id}
        />
      </fieldset>
      {warnings.length > 0 && (
        <div className="card-body stack" role="status">
          <EndpointWarnings warnings={warnings} />
        </div>
      )}
      {canEditEndpoints && (
        <div className="form-foot">
          <div className="grow" role="alert">
            <span className="field-error">{summarizeErrors(errors)}</span>
          </div>
          {endpoint !== undefined && isChanged && <Button onClick={() => setDraft(saved)}>Reset</Button>}
          <Button type="submit" kind="primary" disabled={isBusy || (endpoint !== undefined && !isChanged)}>
            {isBusy ? 'Saving…' : endpoint === undefined ? 'Add endpoint' : 'Save changes'}
          </Button>
        </div>
      )}
      {created !== null && (
        <NewSecretDialog endpoint={created} onClose={() => navigate(`/endpoints/${created.id}`)} />
      )}
    </form>
  );
}

function toFormErrors(error: unknown): FormErrors {
  if (error instanceof DraftError) return { fields: error.errors, message: null };
  const { errors, message } = asApiError(error);
  return { fields: errors.map((field) => ({ ...field, message: translateMessage(field) })), message };
}

function summarizeErrors({ fields, message }: FormErrors): string | null {
  if (fields.length === 0) return message;
  const labels = [...new Set(fields.map(({ path }) => labelField(path)))];
  return `${plural(labels.length, 'field is', 'fields are')} invalid: ${labels.join(', ')}`;
}

/**
 * Leaves out the settings that the user did not touch, so that they follow the server's defaults. An endpoint with batches
 * cannot have an API version, so the draft says null: otherwise the server would fill in that of the tenant.
 */
function buildNewSettings(draft: Draft, untouched: Draft, hasTenantField: boolean): Record<string, unknown> {
  const defaults = toSettings(untouched);
  const changed = Object.entries(toSettings(draft)).filter(
    ([name, value]) =>
      name === 'url' ||
      (name === 'api_version' && draft.shaping === 'batch') ||
      JSON.stringify(value) !== JSON.stringify(defaults[name]),
  );
  return {
    ...Object.fromEntries(changed),
    ...(hasTenantField && draft.tenant.trim() !== '' && { tenant: draft.tenant.trim() }),
  };
}
