/** Times that update every second, with one timer for all of them. */
import { createStore, useStore } from '../api/store.ts';
import { formatAge, formatClock, formatSeconds, formatTime } from './format.ts';

const now = createStore(Date.now());
setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, 1000);

export const useNow = (): number => useStore(now);

/** "12 s ago"; a dash for null. */
export function Ago({ at }: { at: string | null | undefined }) {
  const nowMs = useNow();
  if (at === null || at === undefined) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={`${formatTime(at)} (${at})`} className="nowrap">
      {formatAge(at, nowMs)}
    </time>
  );
}

/** A point in time; `precise` shows milliseconds and no date. */
export function At({ at, precise = false }: { at: string; precise?: boolean }) {
  return (
    <time dateTime={at} title={at} className="nowrap">
      {precise ? formatClock(at) : formatTime(at)}
    </time>
  );
}

/** "in 12 s", counting down to "now". */
export function Countdown({ at }: { at: string }) {
  const seconds = (new Date(at).getTime() - useNow()) / 1000;
  return (
    <time dateTime={at} title={formatTime(at)} className="nowrap">
      {seconds <= 0.5 ? 'now' : `in ${seconds < 90 ? `${Math.ceil(seconds)} s` : formatSeconds(seconds)}`}
    </time>
  );
}
