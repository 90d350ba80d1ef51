import { setQuery, useLocation } from '../router.tsx';

interface FilterSelectProps {
  /** The parameter of the URL's query that holds the choice. */
  name: string;
  label: string;
  options: readonly (readonly [string, string])[];
}

/** A choice that is kept in the URL's query. */
export function FilterSelect({ name, label, options }: FilterSelectProps) {
  const value = useLocation().query.get(name) ?? '';
  return (
    <select
      className="input"
      aria-label={label}
      value={value}
      onChange={(event) => setQuery({ [name]: event.target.value })}
    >
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}
