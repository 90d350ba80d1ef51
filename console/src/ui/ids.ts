import type { IconName } from './icons.tsx';

/** Where an id leads, whatever is pasted around it. */
export function placeOfId(text: string): { to: string; name: string; icon: IconName } | null {
  const id = /\b(evt|dlv|ep|task|key|bat)_[0-9a-z]{20,}\b/i.exec(text)?.[0];
  if (id === undefined) return null;
  if (id.startsWith('evt_')) return { to: `/events/${id}`, name: `Event ${id}`, icon: 'events' };
  if (id.startsWith('dlv_')) return { to: `/deliveries/${id}`, name: `Delivery ${id}`, icon: 'send' };
  if (id.startsWith('ep_')) return { to: `/endpoints/${id}`, name: `Endpoint ${id}`, icon: 'endpoint' };
  if (id.startsWith('task_')) return { to: `/dead-letters?task=${id}`, name: `Task ${id}`, icon: 'replay' };
  return null;
}
