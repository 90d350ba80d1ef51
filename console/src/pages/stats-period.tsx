/** The period of statistics, kept in the URL's query: up to now, or from one time to another. */
import { setQuery, useLocation } from '../router.tsx';
import { formatMinute } from '../ui/format.ts';
import { SegmentedControl } from '../ui/tabs.tsx';
import type { TimeRange } from '../ui/time-range.ts';
import { TimeField } from '../ui/time-range-fields.tsx';

const PERIODS = [
  ['1h', '1 hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['custom', 'From–to'],
] as const;
type PeriodName = (typeof PERIODS)[number][0];

export interface Period {
  readonly name: PeriodName;
  /** The parameters of a request for statistics. */
  readonly query: { window?: string } & TimeRange;
}

const HOUR_MS = 3_600_000;

export function usePeriod(): Period {
  const { query } = useLocation();
  const [since, until] = [query.get('since') ?? '', query.get('until') ?? ''];
  if (since !== '' || until !== '')
    return { name: 'custom', query: { ...(since !== '' && { since }), ...(until !== '' && { until }) } };
  const name = PERIODS.find(([period]) => period === query.get('window'))?.[0] ?? '1h';
  return { name, query: { window: name === 'custom' ? '1h' : name } };
}

/** "1 hour", "16 Nov, 10:00 to 16 Nov, 12:00" */
export function describePeriod({
  window,
  from,
  to,
}: {
  window: string | null;
  from: string;
  to: string;
}): string {
  const name = PERIODS.find(([each]) => each === window)?.[1];
  return name ?? `${formatMinute(from)} to ${formatMinute(to)}`;
}

export function PeriodControl({ value }: { value: Period }) {
  const choose = (name: PeriodName): void =>
    name === 'custom'
      ? setQuery({ window: null, since: new Date(Date.now() - HOUR_MS).toISOString(), until: null })
      : setQuery({ window: name, since: null, until: null });
  return (
    <div className="row wrap">
      {value.name === 'custom' && (
        <>
          <TimeField
            label="From"
            value={value.query.since ?? ''}
            onChange={(since) => setQuery({ since, window: null })}
          />
          <TimeField label="To" value={value.query.until ?? ''} onChange={(until) => setQuery({ until })} />
        </>
      )}
      <SegmentedControl label="Period" value={value.name} options={PERIODS} onChange={choose} />
    </div>
  );
}
