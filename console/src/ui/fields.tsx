import { type ReactNode, useId } from 'react';
import type { FieldError } from '../api/client.ts';

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  className?: string;
  children: (props: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ReactNode;
}

export function Field({ label, hint, error, className = '', children }: FieldProps) {
  const id = useId();
  const describedBy = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`]
    .filter(Boolean)
    .join(' ');
  return (
    <div className={`field ${className}`}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        ...(describedBy !== '' && { 'aria-describedby': describedBy }),
        ...(error !== undefined && { 'aria-invalid': true }),
      })}
      {error !== undefined && (
        <div className="field-error" id={`${id}-error`}>
          {error}
        </div>
      )}
      {hint !== undefined && (
        <div className="field-hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
    </div>
  );
}

type TextProps = Omit<FieldProps, 'children'> & {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  mono?: boolean;
  type?: string;
  disabled?: boolean;
  required?: boolean;
  autoFocus?: boolean;
};

export function TextField({
  value,
  onChange,
  placeholder,
  mono = false,
  type = 'text',
  disabled,
  required,
  autoFocus,
  ...field
}: TextProps) {
  return (
    <Field {...field}>
      {(props) => (
        <input
          {...props}
          className={`input${mono ? ' mono' : ''}`}
          type={type}
          value={value}
          placeholder={placeholder}
          disabled={disabled}
          required={required}
          // biome-ignore lint/a11y/noAutofocus: the only field of the sign-in page
          autoFocus={autoFocus}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function TextArea({
  value,
  onChange,
  rows = 6,
  placeholder,
  ...field
}: TextProps & { rows?: number }) {
  return (
    <Field {...field}>
      {(props) => (
        <textarea
          {...props}
          className="input"
          rows={rows}
          value={value}
          placeholder={placeholder}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function SelectField<T extends string>({
  value,
  onChange,
  options,
  ...field
}: Omit<FieldProps, 'children'> & {
  value: T;
  onChange: (value: T) => void;
  options: readonly (readonly [T, string])[];
}) {
  return (
    <Field {...field}>
      {(props) => (
        <select
          {...props}
          className="input"
          value={value}
          onChange={(event) => onChange(event.target.value as T)}
        >
          {options.map(([option, name]) => (
            <option key={option} value={option}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Checkbox({
  checked,
  onChange,
  children,
  hint,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
  hint?: ReactNode;
}) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {children}
        {hint !== undefined && (
          <span className="field-hint" style={{ display: 'block' }}>
            {hint}
          </span>
        )}
      </span>
    </label>
  );
}

/** The error message for a field, including errors of its members: `retry` also finds `retry.schedule[0]`. */
export function findFieldError(errors: readonly FieldError[], path: string): string | undefined {
  const matches = errors.filter(
    (error) => error.path === path || error.path.startsWith(`${path}.`) || error.path.startsWith(`${path}[`),
  );
  if (matches.length === 0) return undefined;
  return matches
    .map((error) =>
      error.path === path
        ? error.message
        : `${error.path.slice(path.length).replace(/^\./, '')} ${error.message}`,
    )
    .join('; ');
}
