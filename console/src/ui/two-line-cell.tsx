import type { ReactNode } from 'react';

/** A table cell of two lines: the name, and a detail in small print. */
export function TwoLineCell({ first, second }: { first: ReactNode; second: ReactNode }) {
  return (
    <span className="cell-two">
      <span className="truncate">{first}</span>
      <span className="truncate small faint">{second}</span>
    </span>
  );
}
