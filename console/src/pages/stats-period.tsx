/** The period of statistics, kept in the URL's query. */
import { setQuery, useLocation } from '../router.tsx';
import { SegmentedControl } from '../ui/tabs.tsx';

const PERIODS = [
  ['1h', '1 hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
] as const;
export type Period = (typeof PERIODS)[number][0];

export function usePeriod(): Period {
  const chosen = useLocation().query.get('window');
  return PERIODS.find(([period]) => period === chosen)?.[0] ?? '1h';
}

export const describePeriod = (period: Period): string => PERIODS.find(([each]) => each === period)![1];

export function PeriodControl({ value }: { value: Period }) {
  return (
    <SegmentedControl
      label="Period"
      value={value}
      options={PERIODS}
      onChange={(window) => setQuery({ window })}
    />
  );
}
