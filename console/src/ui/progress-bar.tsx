interface ProgressBarProps {
  value: number;
  total: number;
  tone?: string;
  label: string;
}

export function ProgressBar({ value, total, tone = '', label }: ProgressBarProps) {
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
