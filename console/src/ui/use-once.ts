import { useEffect, useRef } from 'react';

/** Once for the life of a component, also where React mounts it twice to test it. */
export function useOnce(work: () => void): void {
  const done = useRef(false);
  useEffect(() => {
    if (done.current) return;
    done.current = true;
    work();
  });
}
