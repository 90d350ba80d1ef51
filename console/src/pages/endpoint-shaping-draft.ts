/**
 * `batch` and `debounce` in the endpoint form. The form offers one choice of three, because an endpoint cannot have both.
 * Other settings that exclude them are reported before the request is sent.
 */
import type { Endpoint } from '@posthorn/client';
import type { FieldError } from '../api/client.ts';
import { pickNumbers, toNumber, toText } from './draft-values.ts';

export type Shaping = 'none' | 'batch' | 'debounce';

export interface ShapingDraft {
  shaping: Shaping;
  batch_max_events: string;
  batch_max_wait_ms: string;
  batch_max_bytes: string;
  batch_split_rejected: boolean;
  debounce_key: string;
  debounce_window_ms: string;
  debounce_mode: string;
  /** '': the default, which depends on the window. */
  debounce_max_wait_ms: string;
}

/** The server's default of `debounce.max_wait_ms`, in windows. */
const DEFAULT_WINDOWS_WAITED = 10;

export function toShapingDraft({
  batch,
  debounce,
}: Pick<Partial<Endpoint>, 'batch' | 'debounce'>): ShapingDraft {
  const hasDefaultWait = debounce?.max_wait_ms === DEFAULT_WINDOWS_WAITED * (debounce?.window_ms ?? 0);
  return {
    shaping: batch != null ? 'batch' : debounce != null ? 'debounce' : 'none',
    batch_max_events: toText(batch?.max_events),
    batch_max_wait_ms: toText(batch?.max_wait_ms),
    batch_max_bytes: toText(batch?.max_bytes),
    batch_split_rejected: batch?.split_rejected ?? true,
    debounce_key: toText(debounce?.key),
    debounce_window_ms: toText(debounce?.window_ms),
    debounce_mode: debounce?.mode ?? 'last',
    debounce_max_wait_ms: hasDefaultWait ? '' : toText(debounce?.max_wait_ms),
  };
}

export function toBatch(draft: ShapingDraft): Record<string, unknown> | null {
  if (draft.shaping !== 'batch') return null;
  return {
    ...pickNumbers({
      max_events: draft.batch_max_events,
      max_wait_ms: draft.batch_max_wait_ms,
      max_bytes: draft.batch_max_bytes,
    }),
    split_rejected: draft.batch_split_rejected,
  };
}

export function toDebounce(draft: ShapingDraft): Record<string, unknown> | null {
  if (draft.shaping !== 'debounce') return null;
  return {
    key: draft.debounce_key.trim(),
    window_ms: toNumber(draft.debounce_window_ms),
    mode: draft.debounce_mode,
    ...pickNumbers({ max_wait_ms: draft.debounce_max_wait_ms }),
  };
}

/** What the API would refuse, in the words of the form. */
export function findShapingConflicts(
  draft: ShapingDraft & { readonly ordering: string; readonly api_version: string },
): FieldError[] {
  const { shaping, ordering, api_version } = draft;
  if (shaping === 'batch' && api_version.trim() !== '')
    return [
      {
        path: 'batch',
        message:
          'Batches are not possible with an API version. Empty that field, or send one request per event.',
      },
    ];
  if (shaping !== 'debounce') return [];
  const errors: FieldError[] = [];
  if (ordering === 'fifo')
    errors.push({
      path: 'debounce',
      message:
        'Debounce is not possible with strict ordering. Set Ordering to None, or send one request per event.',
    });
  if (draft.debounce_key.trim() === '')
    errors.push({ path: 'debounce.key', message: 'Enter a path below data, such as data.order_id.' });
  if (draft.debounce_window_ms.trim() === '')
    errors.push({ path: 'debounce.window_ms', message: 'Enter the length of the window in milliseconds.' });
  const [window, longest] = [draft.debounce_window_ms, draft.debounce_max_wait_ms].map(Number);
  if (draft.debounce_mode === 'last' && draft.debounce_max_wait_ms.trim() !== '' && longest! < window!)
    errors.push({
      path: 'debounce.max_wait_ms',
      message: 'The longest delay must not be shorter than the window.',
    });
  return errors;
}
