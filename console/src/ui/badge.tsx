import type { ReactNode } from 'react';

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'accent' | 'mute';

interface BadgeProps {
  tone?: Tone;
  /** Monospaced, for status codes. */
  code?: boolean;
  children: ReactNode;
}

export function Badge({ tone = 'mute', code = false, children }: BadgeProps) {
  return <span className={`badge ${tone}${code ? ' code' : ''}`}>{children}</span>;
}
