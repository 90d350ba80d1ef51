import { useState } from 'react';
import { call } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { EventType, Page } from '../api/types.ts';
import { navigate } from '../router.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { errorAt, TextArea, TextField } from '../ui/fields.tsx';
import { plural } from '../ui/format.ts';
import { withRawMember } from '../ui/json-text.ts';
import { toast } from '../ui/toasts.tsx';

interface Accepted {
  readonly id: string;
  readonly deliveries: number;
  readonly duplicate: boolean;
}

const EXAMPLE = '{\n  "order_id": 42,\n  "amount": 120\n}';

export function PublishDialog({
  onClose,
  type: givenType = 'order.created',
  example = EXAMPLE,
}: {
  onClose: () => void;
  type?: string;
  example?: string;
}) {
  const may = useMay();
  const { shownTenant } = useSession();
  const [type, setType] = useState(givenType);
  const [tenant, setTenant] = useState(shownTenant ?? '');
  const [key, setKey] = useState('');
  const [data, setData] = useState(example);
  const known = useQuery<Page<EventType>>('/v1/event-types?limit=250').data?.data ?? [];
  const submit = async (): Promise<void> => {
    const event = await call<Accepted>(
      'POST',
      '/v1/events',
      withRawMember(
        {
          type,
          ...(may.allTenants && tenant !== '' && { tenant }),
          ...(key !== '' && { idempotency_key: key }),
        },
        'data',
        data,
      ),
    );
    invalidate('/v1/events', '/v1/stats');
    toast(
      event.duplicate
        ? 'Published before: this is the first one'
        : `Accepted for ${plural(event.deliveries, 'endpoint')}`,
    );
    onClose();
    navigate(`/events/${event.id}`);
  };
  return (
    <FormDialog title="Publish an event" submit="Publish" onClose={onClose} onSubmit={submit} wide>
      {(error) => {
        const errors = error?.errors ?? [];
        return (
          <>
            <div className="form-grid">
              <TextField
                label="Type"
                mono
                value={type}
                onChange={setType}
                required
                error={errorAt(errors, 'type')}
                hint={
                  known.length > 0
                    ? `Known: ${known
                        .slice(0, 4)
                        .map(({ name }) => name)
                        .join(', ')}…`
                    : undefined
                }
              />
              {may.allTenants && (
                <TextField
                  label="Tenant"
                  value={tenant}
                  onChange={setTenant}
                  placeholder="default"
                  error={errorAt(errors, 'tenant')}
                />
              )}
              <TextField
                label="Idempotency key (optional)"
                mono
                value={key}
                onChange={setKey}
                error={errorAt(errors, 'idempotency_key')}
              />
            </div>
            <TextArea
              label="Data (JSON)"
              rows={10}
              value={data}
              onChange={setData}
              error={errorAt(errors, 'data')}
            />
          </>
        );
      }}
    </FormDialog>
  );
}
