import { addressOf, maskTarget } from '../../deliver/index.ts';
import { mayReadSecrets } from '../../domain/access-scopes.ts';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import type { Caller } from '../../manage/caller.ts';
import type { NotifierView } from '../../postgres/queries/notifiers.ts';
import type { Shown } from '../openapi/describe.ts';
import type { NotifierSchema, notifierStatuses } from './schema.ts';

/** `target`: the whole URL or address. */
export function showNotifier(
  caller: Caller,
  view: NotifierView,
  target: string,
): Shown<typeof NotifierSchema> {
  const { kind, events, confirmed_at } = view.config.notifier;
  return {
    id: publicId(idPrefixes.notifier, view.id),
    tenant: view.tenant,
    operator: view.config.operator ?? false,
    kind,
    // Hide the path: whoever knows it can post.
    url: kind === 'email' ? null : mayReadSecrets(caller) ? target : maskTarget(target),
    address: kind === 'email' ? addressOf(target) : null,
    events,
    description: view.description,
    status: statusOf(view),
    disabled_reason: view.disabled_reason,
    confirmed_at: confirmed_at === undefined ? null : new Date(confirmed_at),
    endpoint_id: publicId(idPrefixes.endpoint, view.id),
    created_at: view.created_at,
  };
}

function statusOf({ enabled, config }: NotifierView): (typeof notifierStatuses)[number] {
  if (!enabled) return 'disabled';
  return config.notifier.confirmation === undefined ? 'active' : 'unconfirmed';
}
