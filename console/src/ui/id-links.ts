import type { IconName } from './icons.tsx';

interface IdLink {
  readonly to: string;
  readonly name: string;
  readonly icon: IconName;
}

/** Finds an id anywhere in a text and returns the page that shows it; null if there is no id with a page. */
export function findIdLink(text: string): IdLink | null {
  const match = /\b(evt|dlv|ep|bat|task)_[0-9a-z]{20,}\b/i.exec(text);
  if (match === null) return null;
  const [id, prefix] = match;
  switch (prefix) {
    case 'evt':
      return { to: `/events/${id}`, name: `Event ${id}`, icon: 'events' };
    case 'dlv':
      return { to: `/deliveries/${id}`, name: `Delivery ${id}`, icon: 'send' };
    case 'ep':
      return { to: `/endpoints/${id}`, name: `Endpoint ${id}`, icon: 'endpoint' };
    case 'bat':
      return { to: `/batches/${id}`, name: `Batch ${id}`, icon: 'send' };
    case 'task':
      return { to: `/tasks/${id}`, name: `Task ${id}`, icon: 'replay' };
    default:
      return null;
  }
}
