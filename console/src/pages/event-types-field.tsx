import type { EventType, Page } from '@posthorn/client';
import { useQuery } from '../api/query.ts';
import { TextField } from '../ui/fields.tsx';

const MAX_CHOICES = 12;
const splitTypes = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '');

interface EventTypesFieldProps {
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
}

/** Event types as free text, with the types of the catalogue to choose from. */
export function EventTypesField({ value, onChange, error }: EventTypesFieldProps) {
  const { data } = useQuery<Page<EventType>>('/v1/event-types?limit=250');
  const chosen = splitTypes(value);
  const last = /[\s,]$/.test(value) ? '' : (chosen.at(-1) ?? '');
  const known = (data?.data ?? []).filter(({ deprecated }) => !deprecated).map(({ name }) => name);
  const isNarrowed = last !== '*' && !known.includes(last);
  const choices = known
    .filter((name) => chosen.includes(name) || !isNarrowed || name.includes(last.replace(/\.?\*$/, '')))
    .slice(0, MAX_CHOICES);
  const toggle = (name: string): void => {
    if (chosen.includes(name)) return onChange(chosen.filter((each) => each !== name).join(', '));
    // A choice replaces "all types", and what was typed to find it.
    const kept = chosen.filter((each) => each !== '*' && !(each === last && isNarrowed));
    onChange([...kept, name].join(', '));
  };
  return (
    <div className="wide stack" style={{ gap: 6 }}>
      <TextField
        label="Event types"
        mono
        hint="Separate with commas. order.* matches every type that starts with “order.”; * matches all."
        value={value}
        onChange={onChange}
        error={error}
      />
      {choices.length > 0 && (
        <fieldset className="chips" aria-label="Types of the catalogue">
          {choices.map((name) => (
            <button
              key={name}
              type="button"
              className="chip mono"
              aria-pressed={chosen.includes(name)}
              onClick={() => toggle(name)}
            >
              {name}
            </button>
          ))}
        </fieldset>
      )}
    </div>
  );
}
