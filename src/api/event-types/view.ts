import { eventTypeFields } from '../../manage/event-types.ts';
import type { EventTypeRecord } from '../../postgres/queries/event-types.ts';
import type { Shown } from '../openapi/describe.ts';
import type { EventTypeSchema } from './schema.ts';

export const showEventType = (type: EventTypeRecord): Shown<typeof EventTypeSchema> => ({
  name: type.name,
  ...eventTypeFields(type),
  created_at: type.created_at,
  updated_at: type.updated_at,
});
