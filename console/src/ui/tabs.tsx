import type { ReactNode } from 'react';
import { Link } from '../router.tsx';

interface TabsProps {
  tabs: readonly (readonly [string, ReactNode])[];
  current: string;
  getLink: (tab: string) => string;
}

export function Tabs({ tabs, current, getLink }: TabsProps) {
  return (
    <nav className="tabs" aria-label="Sections">
      {tabs.map(([tab, name]) => (
        <Link key={tab} to={getLink(tab)} aria-current={tab === current ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

interface SegmentedControlProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

export function SegmentedControl<T extends string>({
  label,
  value,
  options,
  onChange,
}: SegmentedControlProps<T>) {
  return (
    <fieldset className="segments" aria-label={label} style={{ border: 0, margin: 0 }}>
      {options.map(([option, name]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {name}
        </button>
      ))}
    </fieldset>
  );
}
