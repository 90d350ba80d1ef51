import type { ReactNode } from 'react';
import type { FieldError } from '../api/client.ts';
import { findFieldError } from '../ui/fields.tsx';
import type { Draft } from './endpoint-draft.ts';

export interface SectionProps {
  draft: Draft;
  onChange: (changes: Partial<Draft>) => void;
  errors: readonly FieldError[];
}

export function Section({ title, about, children }: { title: string; about: string; children: ReactNode }) {
  return (
    <section className="form-section">
      <div className="about">
        <h2>{title}</h2>
        <p>{about}</p>
      </div>
      <div className="form-grid">{children}</div>
    </section>
  );
}

/** Returns a function that binds a text field to a member of the draft. `path` is its name in the API's errors. */
export function createFieldBinder({ draft, onChange, errors }: SectionProps) {
  return (name: keyof Draft & string, path: string = name) => ({
    value: draft[name] as string,
    onChange: (value: string) => onChange({ [name]: value } as Partial<Draft>),
    error: findFieldError(errors, path),
  });
}
