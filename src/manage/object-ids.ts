import { type IdPrefix, idPrefixes, parsePublicId, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';

type ObjectKind =
  | 'endpoint'
  | 'event'
  | 'delivery'
  | 'batch'
  | 'task'
  | 'key'
  | 'notifier'
  | 'portal session';

/** Portal sessions are keys. */
const prefixOf = (kind: ObjectKind): IdPrefix => idPrefixes[kind === 'portal session' ? 'key' : kind];

/** The UUID behind a public id such as `ep_…`. Throws `not_found` if the text is not an id of this kind. */
export function readObjectId(kind: ObjectKind, text: string): Uuid {
  const id = parsePublicId(prefixOf(kind), text);
  if (id === null) throw new Problem('not_found', `There is no ${kind} ${text}.`);
  return id;
}

export function notFound(kind: ObjectKind, id: Uuid): Problem {
  return new Problem('not_found', `There is no ${kind} ${publicId(prefixOf(kind), id)}.`);
}
