/** The small parts that everything is made of. */
import type { ButtonHTMLAttributes, ReactNode } from 'react';
import type { ApiError } from '../api/client.ts';
import { Link } from '../router.tsx';
import { useCopy } from './clipboard.ts';
import { Icon, type IconName } from './icons.tsx';

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'accent' | 'mute';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: string;
  icon?: IconName;
  /** For buttons without words. */
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

export function LinkButton({
  to,
  kind = '',
  icon,
  children,
}: {
  to: string;
  kind?: string;
  icon?: IconName;
  children: ReactNode;
}) {
  return (
    <Link to={to} className={`button ${kind}`}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </Link>
  );
}

export function Badge({
  tone = 'mute',
  code = false,
  children,
}: {
  tone?: Tone;
  code?: boolean;
  children: ReactNode;
}) {
  return <span className={`badge ${tone}${code ? ' code' : ''}`}>{children}</span>;
}

export function Card({
  title,
  actions,
  children,
  foot,
  className = '',
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  foot?: ReactNode;
  className?: string;
}) {
  return (
    <section className={`card ${className}`}>
      {title !== undefined && (
        <div className="card-head">
          <h2>{title}</h2>
          {actions}
        </div>
      )}
      {children}
      {foot !== undefined && <div className="card-foot">{foot}</div>}
    </section>
  );
}

export function PageHead({
  title,
  crumb,
  children,
  below,
}: {
  title: ReactNode;
  crumb?: ReactNode;
  children?: ReactNode;
  below?: ReactNode;
}) {
  return (
    <header className="page-head">
      <div className="titles">
        {crumb !== undefined && <div className="crumb">{crumb}</div>}
        <h1>{title}</h1>
        {below}
      </div>
      {children !== undefined && <div className="actions">{children}</div>}
    </header>
  );
}

/** `label` where something has to be said meanwhile, as in a heading. */
export function Skeleton({ width = 120, label }: { width?: number | string; label?: string }) {
  return (
    <>
      <span className="skeleton" style={{ width }} aria-hidden="true" />
      {label !== undefined && <span className="sr-only">{label}</span>}
    </>
  );
}

export function Empty({
  icon,
  title,
  children,
  actions,
}: {
  icon: IconName;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <div className="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
      {actions !== undefined && <div className="actions">{actions}</div>}
    </div>
  );
}

const NOTICE_ICONS: Record<string, IconName> = { good: 'check', bad: 'warning', warn: 'warning' };

export function Notice({
  tone = 'mute',
  title,
  children,
}: {
  tone?: Tone;
  title?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className={`notice ${tone}`}>
      <Icon name={NOTICE_ICONS[tone] ?? 'info'} />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {children}
      </div>
    </div>
  );
}

/** What went wrong and what to do about it. */
export function Failure({ error, retry }: { error: ApiError; retry?: () => unknown }) {
  return (
    <div className="card-body" role="alert">
      <Notice tone="bad" title={titleOf(error)}>
        {error.message}
        {error.requestId !== null && <div className="small faint mono">{error.requestId}</div>}
        {retry !== undefined && (
          <div style={{ marginTop: 8 }}>
            <Button kind="small" icon="replay" onClick={() => void retry()}>
              Try again
            </Button>
          </div>
        )}
      </Notice>
    </div>
  );
}

function titleOf({ status }: ApiError): string {
  if (status === 0) return 'No connection';
  if (status === 403) return 'This key may not do that';
  if (status === 404) return 'Not found';
  if (status === 429) return 'Too many requests';
  return status >= 500 ? 'Posthorn could not answer' : 'That did not work';
}

/** An id that goes to the clipboard with a click. */
export function Copy({ text, shown = text, label }: { text: string; shown?: string; label?: string }) {
  const [copied, copy] = useCopy(text);
  return (
    <button
      type="button"
      className="copy"
      onClick={copy}
      title="Copy"
      aria-label={`Copy ${label === undefined ? '' : `${label} `}${shown}`}
    >
      <span>{shown}</span>
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  );
}

export function Segments<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}) {
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

export function Tabs({
  tabs,
  current,
  to,
}: {
  tabs: readonly (readonly [string, ReactNode])[];
  current: string;
  to: (tab: string) => string;
}) {
  return (
    <nav className="tabs" aria-label="Sections">
      {tabs.map(([tab, name]) => (
        <Link key={tab} to={to(tab)} aria-current={tab === current ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

export function Meter({
  value,
  total,
  tone = '',
  label,
}: {
  value: number;
  total: number;
  tone?: string;
  label: string;
}) {
  const percent = total === 0 ? 100 : Math.min(100, (value / total) * 100);
  return (
    <div
      className={`meter ${tone}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={value}
    >
      <span style={{ width: `${percent}%` }} />
    </div>
  );
}
