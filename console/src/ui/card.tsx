import type { ReactNode } from 'react';

interface CardProps {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  foot?: ReactNode;
}

export function Card({ title, actions, children, foot }: CardProps) {
  return (
    <section className="card">
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
