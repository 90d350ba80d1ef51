/** A version of an event type as the fields of a form. */
import type { EventTypeVersion, EventTypeVersionSettings } from '@posthorn/client';
import { parseOptionalJson } from '../ui/json-text.ts';
import { fromLocalInput, toLocalInput } from '../ui/time-range.ts';

export interface VersionDraft {
  version: string;
  /** JSON, or ''. */
  schema: string;
  /** JSON, or ''. */
  example: string;
  description: string;
  changelog: string;
  status: EventTypeVersion['status'];
  /** The value of a `datetime-local` field, or ''. */
  sunset: string;
}

const toJson = (value: unknown): string => (value == null ? '' : JSON.stringify(value, null, 2));

/** The fields of a stored version. */
export const toVersionDraft = (version: EventTypeVersion): VersionDraft => ({
  version: version.version,
  schema: toJson(version.schema),
  example: toJson(version.example),
  description: version.description,
  changelog: version.changelog,
  status: version.status,
  sunset: version.sunset_at === null ? '' : toLocalInput(version.sunset_at),
});

/** The fields of a new version: it starts with the schema and the example of the newest one. */
export const toNewVersionDraft = (newest: EventTypeVersion | undefined, today: Date): VersionDraft => ({
  version: suggestName(newest?.version, today),
  schema: toJson(newest?.schema),
  example: toJson(newest?.example),
  description: newest?.description ?? '',
  changelog: '',
  status: 'active',
  sunset: '',
});

/** The next name in the style of the newest version: `v3` after `v2`, otherwise the date. */
export function suggestName(newest: string | undefined, today: Date): string {
  const number = /^v(\d+)$/.exec(newest ?? '')?.[1];
  return number === undefined ? today.toISOString().slice(0, 10) : `v${Number(number) + 1}`;
}

/** The body of `PUT`. Throws if the schema or the example is not valid JSON. */
export const toVersionSettings = (draft: VersionDraft): EventTypeVersionSettings => ({
  schema: parseField(draft.schema, 'The schema') as EventTypeVersion['schema'],
  example: parseField(draft.example, 'The example'),
  description: draft.description,
  changelog: draft.changelog,
  status: draft.status,
  sunset_at: draft.sunset === '' ? null : fromLocalInput(draft.sunset),
});

function parseField(text: string, name: string): unknown {
  try {
    return parseOptionalJson(text);
  } catch {
    throw new Error(`${name} is not valid JSON.`);
  }
}
