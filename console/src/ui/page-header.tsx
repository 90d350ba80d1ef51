import type { ReactNode } from 'react';

interface PageHeaderProps {
  title: ReactNode;
  /** A link to the parent page, above the title. */
  crumb?: ReactNode;
  /** Text below the title. */
  below?: ReactNode;
  /** Buttons at the right. */
  children?: ReactNode;
}

export function PageHeader({ title, crumb, below, children }: PageHeaderProps) {
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
