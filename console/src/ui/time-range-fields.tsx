import { useState } from 'react';
import { setQuery } from '../router.tsx';
import { useQueryRange } from './query-range.ts';
import { ANY_TIME, fromLocalInput, PERIODS, type RangeChoice, toLocalInput } from './time-range.ts';

interface TimeRangeFieldsProps {
  value: RangeChoice;
  onChange: (value: RangeChoice) => void;
  label?: string;
}

const CUSTOM = 'custom';

/** A choice of a period, or two fields for from and to. */
export function TimeRangeFields({ value, onChange, label = 'Time' }: TimeRangeFieldsProps) {
  const [isCustom, setCustom] = useState(value.since !== '' || value.until !== '');
  const isRange = value.hours === '' && (isCustom || value.since !== '' || value.until !== '');
  const choose = (choice: string): void => {
    setCustom(choice === CUSTOM);
    onChange({ ...ANY_TIME, hours: choice === CUSTOM ? '' : choice });
  };
  return (
    <>
      <select
        className="input"
        aria-label={label}
        value={isRange ? CUSTOM : value.hours}
        onChange={(event) => choose(event.target.value)}
      >
        {PERIODS.map(([hours, name]) => (
          <option key={hours} value={hours}>
            {name}
          </option>
        ))}
        <option value={CUSTOM}>From … to …</option>
      </select>
      {isRange && (
        <>
          <TimeField label="From" value={value.since} onChange={(since) => onChange({ ...value, since })} />
          <TimeField label="To" value={value.until} onChange={(until) => onChange({ ...value, until })} />
        </>
      )}
    </>
  );
}

interface TimeFieldProps {
  label: string;
  /** An ISO time, or ''. */
  value: string;
  onChange: (iso: string) => void;
}

export function TimeField({ label, value, onChange }: TimeFieldProps) {
  return (
    <input
      className="input time"
      type="datetime-local"
      aria-label={label}
      title={`${label}, in your time zone`}
      value={toLocalInput(value)}
      onChange={(event) => onChange(fromLocalInput(event.target.value))}
    />
  );
}

/** The time range of a list, kept in the URL's query. */
export function TimeRangeFilter() {
  const { choice } = useQueryRange();
  return <TimeRangeFields value={choice} onChange={(next) => setQuery({ ...next })} />;
}
