import { type ReactNode, useEffect, useState } from 'react';
import type { FieldError } from '../api/client.ts';
import { findFieldError } from '../ui/fields.tsx';
import type { Draft } from './endpoint-draft.ts';

export interface SectionProps {
  draft: Draft;
  onChange: (changes: Partial<Draft>) => void;
  errors: readonly FieldError[];
  /** Undefined: the endpoint is new. */
  endpointId?: string | undefined;
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

interface FoldedSectionProps {
  title: string;
  about: string;
  /** The current values in a few words, while the section is closed. */
  summary: string;
  /** A section with an error opens, because a hidden field cannot be corrected. */
  hasError: boolean;
  children: ReactNode;
}

/** A section that is closed at first, and shows a summary of its values. */
export function FoldedSection({ title, about, summary, hasError, children }: FoldedSectionProps) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (hasError) setOpen(true);
  }, [hasError]);
  return (
    <details className="form-fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>{title}</h2>
        <span className="small faint">{isOpen ? about : summary}</span>
      </summary>
      <div className="form-grid">{children}</div>
    </details>
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
