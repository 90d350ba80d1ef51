import type { AcceptedEvent, EventType, Page } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { navigate } from '../router.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { findFieldError, TextArea, TextField } from '../ui/fields.tsx';
import { plural } from '../ui/format.ts';
import { appendRawMember } from '../ui/json-text.ts';
import { showToast } from '../ui/toasts.tsx';

const EXAMPLE_DATA = '{\n  "order_id": 42,\n  "amount": 120\n}';

interface PublishDialogProps {
  onClose: () => void;
  initialType?: string;
  initialData?: string;
}

export function PublishDialog({
  onClose,
  initialType = 'order.created',
  initialData = EXAMPLE_DATA,
}: PublishDialogProps) {
  const { canSeeAllTenants } = usePermissions();
  const { selectedTenant } = useSession();
  const [type, setType] = useState(initialType);
  const [tenant, setTenant] = useState(selectedTenant ?? '');
  const [idempotencyKey, setIdempotencyKey] = useState('');
  const [data, setData] = useState(initialData);
  const typeHint = useTypeHint();
  const publish = async (): Promise<void> => {
    const head = {
      type,
      ...(canSeeAllTenants && tenant !== '' && { tenant }),
      ...(idempotencyKey !== '' && { idempotency_key: idempotencyKey }),
    };
    const event = await callApi<AcceptedEvent>('POST', '/v1/events', appendRawMember(head, 'data', data));
    invalidate('/v1/events', '/v1/stats');
    showToast(describeAccepted(event));
    onClose();
    navigate(`/events/${event.id}`);
  };
  return (
    <FormDialog title="Publish an event" submitLabel="Publish" onClose={onClose} onSubmit={publish} wide>
      {(error) => {
        const errorOf = (path: string) => findFieldError(error?.errors ?? [], path);
        return (
          <>
            <div className="form-grid">
              <TextField
                label="Type"
                mono
                value={type}
                onChange={setType}
                required
                error={errorOf('type')}
                hint={typeHint}
              />
              {canSeeAllTenants && (
                <TextField
                  label="Tenant"
                  value={tenant}
                  onChange={setTenant}
                  placeholder="default"
                  error={errorOf('tenant')}
                />
              )}
              <TextField
                label="Idempotency key (optional)"
                mono
                value={idempotencyKey}
                onChange={setIdempotencyKey}
                error={errorOf('idempotency_key')}
              />
            </div>
            <TextArea label="Data (JSON)" rows={10} value={data} onChange={setData} error={errorOf('data')} />
          </>
        );
      }}
    </FormDialog>
  );
}

function describeAccepted({ duplicate, deliveries }: AcceptedEvent): string {
  return duplicate
    ? 'Already published with this idempotency key: showing the first event'
    : `Accepted for ${plural(deliveries, 'endpoint')}`;
}

/** Some types of the catalogue, as examples. */
function useTypeHint(): string | undefined {
  const { data } = useQuery<Page<EventType>>('/v1/event-types?limit=250');
  const names = data?.data.map(({ name }) => name) ?? [];
  if (names.length === 0) return undefined;
  return `In the catalogue: ${names.slice(0, 4).join(', ')}${names.length > 4 ? '…' : ''}`;
}
