import { useMemo } from 'react';
import { useLocation } from '../router.tsx';
import { type RangeChoice, type TimeRange, toTimeRange } from './time-range.ts';

/** The range in the URL's query. A period is fixed when the user chooses it: a moving start would reload the list. */
export function useQueryRange(): { choice: RangeChoice; range: TimeRange; isSet: boolean } {
  const { query } = useLocation();
  const [hours, since, until] = ['hours', 'since', 'until'].map((name) => query.get(name) ?? '') as [
    string,
    string,
    string,
  ];
  return useMemo(() => {
    const choice = { hours, since, until };
    const range = toTimeRange(choice, Date.now());
    return { choice, range, isSet: range.since !== undefined || range.until !== undefined };
  }, [hours, since, until]);
}
