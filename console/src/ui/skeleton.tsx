interface SkeletonProps {
  width?: number | string;
  /** Text for screen readers, needed inside a heading. */
  label?: string;
}

/** A grey bar in the place of content that is loading. */
export function Skeleton({ width = 120, label }: SkeletonProps) {
  return (
    <>
      <span className="skeleton" style={{ width }} aria-hidden="true" />
      {label !== undefined && <span className="sr-only">{label}</span>}
    </>
  );
}
