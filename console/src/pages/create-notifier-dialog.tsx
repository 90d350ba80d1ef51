import type { NewNotifier, Notifier } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { Checkbox, findFieldError, SelectField, TextField } from '../ui/fields.tsx';

const KINDS = [
  ['slack', 'Chat: a Slack-compatible webhook'],
  ['email', 'E-mail'],
] as const;

interface CreateNotifierDialogProps {
  onClose: () => void;
  onCreated: (notifier: Notifier) => void;
}

export function CreateNotifierDialog({ onClose, onCreated }: CreateNotifierDialogProps) {
  const { selectedTenant } = useSession();
  const { isAdmin, canSeeAllTenants } = usePermissions();
  const [kind, setKind] = useState<NewNotifier['kind']>('slack');
  const [target, setTarget] = useState('');
  const [isOperator, setIsOperator] = useState(false);
  const [tenant, setTenant] = useState(selectedTenant ?? '');
  const [events, setEvents] = useState('');
  const [description, setDescription] = useState('');
  const patterns = events.split(/[\s,]+/).filter((pattern) => pattern !== '');
  const create = async (): Promise<void> => {
    const body: NewNotifier = {
      kind,
      ...(kind === 'email' ? { address: target.trim() } : { url: target.trim() }),
      ...(isOperator ? { operator: true } : tenant.trim() !== '' && { tenant: tenant.trim() }),
      ...(patterns.length > 0 && { events: patterns }),
      ...(description !== '' && { description }),
    };
    onCreated(await callApi<Notifier>('POST', '/v1/notifiers', body));
  };
  return (
    <FormDialog title="Create a notifier" submitLabel="Create notifier" onClose={onClose} onSubmit={create}>
      {(error) => {
        const errorOf = (path: string): string | undefined => findFieldError(error?.errors ?? [], path);
        return (
          <>
            <SelectField
              label="Kind"
              value={kind}
              onChange={setKind}
              options={KINDS}
              error={errorOf('kind')}
            />
            {kind === 'email' ? (
              <TextField
                label="E-mail address"
                type="email"
                value={target}
                onChange={setTarget}
                hint={
                  isOperator
                    ? undefined
                    : 'Posthorn first sends a link to this address. Notices follow when its owner has confirmed it.'
                }
                error={errorOf('address')}
              />
            ) : (
              <TextField
                label="Webhook URL"
                mono
                value={target}
                onChange={setTarget}
                placeholder="https://hooks.slack.com/services/…"
                error={errorOf('url')}
              />
            )}
            {isAdmin && (
              <Checkbox checked={isOperator} onChange={setIsOperator}>
                Report all tenants
              </Checkbox>
            )}
            {canSeeAllTenants && !isOperator && (
              <TextField
                label="Tenant"
                value={tenant}
                onChange={setTenant}
                placeholder="default"
                error={errorOf('tenant')}
              />
            )}
            <TextField
              label="Events"
              mono
              value={events}
              onChange={setEvents}
              placeholder="posthorn.*"
              hint="Operational events, separated by commas. If empty, all of them."
              error={errorOf('events')}
            />
            <TextField label="Description" value={description} onChange={setDescription} />
          </>
        );
      }}
    </FormDialog>
  );
}
