import type { RequestEstimate as Estimate } from '@posthorn/client';
import { useEffect, useState } from 'react';
import { callApi } from '../api/client.ts';
import { asApiError } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { useDebounced } from '../ui/use-debounced.ts';
import { type Draft, DraftError, toSettings } from './endpoint-draft.ts';
import { labelField, translateMessage } from './endpoint-labels.ts';
import { describeEstimate } from './estimate-text.ts';

const PAUSE_MS = 400;

/** How many requests the settings of the form would have made of the last hour's events, while the user changes them. */
export function RequestEstimate({ draft }: { draft: Draft }) {
  const { canSeeAllTenants } = usePermissions();
  const order = useDebounced(JSON.stringify(buildRequest(draft, canSeeAllTenants)), PAUSE_MS);
  const [result, setResult] = useState('');
  useEffect(() => {
    const body = JSON.parse(order) as object | null;
    if (body === null) return setResult('');
    const controller = new AbortController();
    callApi<Estimate>('POST', '/v1/shaping/estimate', body, controller.signal).then(
      (estimate) => setResult(describeEstimate(estimate)),
      (error) => {
        if (!controller.signal.aborted) setResult(describeFailure(error));
      },
    );
    return () => controller.abort();
  }, [order]);
  return (
    <p className="wide small estimate" role="status">
      {result}
    </p>
  );
}

/** Null: the form is not complete yet. */
function buildRequest(draft: Draft, canSeeAllTenants: boolean): object | null {
  try {
    const { events, channels, filter, payload, batch, debounce } = toSettings(draft);
    const tenant = draft.tenant.trim();
    return {
      events,
      channels,
      filter,
      payload,
      batch,
      debounce,
      ...(canSeeAllTenants && tenant !== '' && { tenant }),
    };
  } catch (error) {
    if (error instanceof DraftError) return null;
    throw error;
  }
}

function describeFailure(error: unknown): string {
  const { errors, message } = asApiError(error);
  const [first] = errors;
  return first === undefined ? message : `No estimate: ${labelField(first.path)} ${translateMessage(first)}.`;
}
