import { type ListedVersion, versionFields } from '../../manage/event-type-versions.ts';
import { eventTypeFields } from '../../manage/event-types.ts';
import type { EventTypeRecord } from '../../postgres/queries/event-types.ts';
import type { Shown } from '../openapi/describe.ts';
import type { EventTypeSchema } from './schema.ts';
import type { EventTypeVersionSchema } from './version-schema.ts';

export const showEventType = (type: EventTypeRecord): Shown<typeof EventTypeSchema> => ({
  name: type.name,
  ...eventTypeFields(type),
  latest_version: type.latest_version,
  created_at: type.created_at,
  updated_at: type.updated_at,
});

export const showVersion = ({
  version: { event_type, version, created_at, updated_at, ...settings },
  isLatest,
}: ListedVersion): Shown<typeof EventTypeVersionSchema> => ({
  event_type,
  version,
  ...versionFields({ event_type, version, ...settings }),
  latest: isLatest,
  created_at,
  updated_at,
});
