/** Where the time of an attempt went. */
import type { Attempt } from '../api/types.ts';
import { showMs } from '../ui/format.ts';

interface Phase {
  readonly kind: 'dns' | 'connect' | 'tls' | 'wait' | 'read';
  readonly name: string;
  readonly ms: number;
}

export function phasesOf({ timing, duration_ms }: Attempt): Phase[] {
  const [dns, connect, tls] = [timing.dns_ms ?? 0, timing.connect_ms ?? 0, timing.tls_ms ?? 0];
  const firstByte = timing.first_byte_ms ?? duration_ms;
  const phases: Phase[] = [
    { kind: 'dns', name: 'Name', ms: dns },
    { kind: 'connect', name: 'Connect', ms: connect },
    { kind: 'tls', name: 'TLS', ms: tls },
    { kind: 'wait', name: 'Waiting for the answer', ms: Math.max(0, firstByte - dns - connect - tls) },
    { kind: 'read', name: 'Reading it', ms: Math.max(0, duration_ms - firstByte) },
  ];
  return phases.filter(({ ms }) => ms > 0);
}

export function TimingBar({ attempt, scaleMs }: { attempt: Attempt; scaleMs: number }) {
  return (
    <span className="timing" aria-hidden="true">
      {phasesOf(attempt).map(({ kind, ms }) => (
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
        {phasesOf(attempt).map(({ kind, name, ms }) => (
          <span key={kind}>
            <i className={`phase-${kind}`} />
            {name} {showMs(ms)}
          </span>
        ))}
        {attempt.timing.connect_ms === null && (
          <span className="faint">The connection was open already.</span>
        )}
      </div>
    </div>
  );
}
