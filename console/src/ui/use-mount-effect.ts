import { useEffect, useRef } from 'react';

/** Runs once per component, although React's strict mode runs effects twice in development. */
export function useMountEffect(run: () => void): void {
  const hasRun = useRef(false);
  useEffect(() => {
    if (hasRun.current) return;
    hasRun.current = true;
    run();
  });
}
