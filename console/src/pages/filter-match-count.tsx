import type { FilterCounted } from '@posthorn/client';
import { useEffect, useState } from 'react';
import { callApi } from '../api/client.ts';
import { asApiError } from '../api/query.ts';
import { parseOptionalJson } from '../ui/json-text.ts';
import { useDebounced } from '../ui/use-debounced.ts';

interface FilterMatchCountProps {
  /** The filter as JSON text. */
  filter: string;
  /** Event types and patterns, separated by commas. */
  events: string;
  /** '' or null: the tenant of the key, or all. */
  tenant: string | null;
}

const PAUSE_MS = 400;

/** How many of the last 100 events the filter selects, while the user types it. */
export function FilterMatchCount({ filter, events, tenant }: FilterMatchCountProps) {
  const order = useDebounced(JSON.stringify({ filter, events, tenant }), PAUSE_MS);
  const [result, setResult] = useState('');
  useEffect(() => {
    const controller = new AbortController();
    countMatches(JSON.parse(order) as FilterMatchCountProps, controller.signal).then(setResult, (error) => {
      if (!controller.signal.aborted) setResult(asApiError(error).message);
    });
    return () => controller.abort();
  }, [order]);
  return (
    <span className="small soft" role="status">
      {result}
    </span>
  );
}

async function countMatches(
  { filter, events, tenant }: FilterMatchCountProps,
  signal: AbortSignal,
): Promise<string> {
  const patterns = events.split(/[\s,]+/).filter((word) => word !== '');
  let parsed: unknown;
  try {
    parsed = parseOptionalJson(filter);
  } catch {
    return 'Not valid JSON yet.';
  }
  const { examined, matching } = await callApi<FilterCounted>(
    'POST',
    '/v1/filters/count',
    {
      filter: parsed,
      ...(patterns.length > 0 && { events: patterns }),
      ...(tenant !== null && tenant.trim() !== '' && { tenant: tenant.trim() }),
    },
    signal,
  );
  if (examined === 0) return 'There are no events to try the filter on yet.';
  return `Selects ${matching} of the last ${examined} ${examined === 1 ? 'event' : 'events'}.`;
}
