/** How long each phase of an attempt took. */
import type { Attempt } from '@posthorn/client';
import { formatMs } from '../ui/format.ts';

interface Phase {
  readonly kind: 'dns' | 'connect' | 'tls' | 'wait' | 'read';
  readonly name: string;
  readonly ms: number;
}

function listPhases({ timing, duration_ms }: Attempt): Phase[] {
  const [dns, connect, tls] = [timing.dns_ms ?? 0, timing.connect_ms ?? 0, timing.tls_ms ?? 0];
  const firstByte = timing.first_byte_ms ?? duration_ms;
  const phases: Phase[] = [
    { kind: 'dns', name: 'DNS', ms: dns },
    { kind: 'connect', name: 'Connect', ms: connect },
    { kind: 'tls', name: 'TLS', ms: tls },
    { kind: 'wait', name: 'Waiting for the response', ms: Math.max(0, firstByte - dns - connect - tls) },
    { kind: 'read', name: 'Reading the response', ms: Math.max(0, duration_ms - firstByte) },
  ];
  return phases.filter(({ ms }) => ms > 0);
}

/** The phases as a bar; `scaleMs` is its full width. */
export function TimingBar({ attempt, scaleMs }: { attempt: Attempt; scaleMs: number }) {
  return (
    <span className="timing" aria-hidden="true">
      {listPhases(attempt).map(({ kind, ms }) => (
        <span
          key={kind}
          className={`phase-${kind}`}
          style={{ width: `${Math.max(1, (ms / scaleMs) * 100)}%` }}
        />
      ))}
    </span>
  );
}

export function TimingLegend({ attempt }: { attempt: Attempt }) {
  return (
    <div className="stack" style={{ gap: 6 }}>
      <TimingBar attempt={attempt} scaleMs={Math.max(attempt.duration_ms, 1)} />
      <div className="timing-legend">
        {listPhases(attempt).map(({ kind, name, ms }) => (
          <span key={kind}>
            <i className={`phase-${kind}`} />
            {name} {formatMs(ms)}
          </span>
        ))}
        {attempt.timing.connect_ms === null && <span className="faint">Reused an open connection.</span>}
      </div>
    </div>
  );
}
