import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Link } from '../router.tsx';
import { Icon, type IconName } from './icons.tsx';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  /** CSS classes: `primary`, `danger`, `quiet`, `small`. */
  kind?: string;
  icon?: IconName;
  /** The accessible name and tooltip; required for a button without text. */
  label?: string;
};

export function Button({ kind = '', icon, label, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={`button ${kind}${children === undefined ? ' icon' : ''}`}
      aria-label={label}
      title={label}
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface LinkButtonProps {
  to: string;
  kind?: string;
  icon?: IconName;
  children: ReactNode;
}

export function LinkButton({ to, kind = '', icon, children }: LinkButtonProps) {
  return (
    <Link to={to} className={`button ${kind}`}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </Link>
  );
}
