/** Times that tick. One timer for all of them. */
import { createStore, useStore } from '../api/store.ts';
import { showAgo, showClock, showSeconds, showTime } from './format.ts';

const now = createStore(Date.now());
setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, 1000);

export const useNow = (): number => useStore(now);

export function Ago({ at }: { at: string | null | undefined }) {
  const nowMs = useNow();
  if (at === null || at === undefined) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={`${showTime(at)} (${at})`} className="nowrap">
      {showAgo(at, nowMs)}
    </time>
  );
}

export function At({ at, precise = false }: { at: string; precise?: boolean }) {
  return (
    <time dateTime={at} title={at} className="nowrap">
      {precise ? showClock(at) : showTime(at)}
    </time>
  );
}

/** "in 12 s", counting down. */
export function Countdown({ at }: { at: string }) {
  const seconds = (new Date(at).getTime() - useNow()) / 1000;
  return (
    <time dateTime={at} title={showTime(at)} className="nowrap">
      {seconds <= 0.5 ? 'now' : `in ${seconds < 90 ? `${Math.ceil(seconds)} s` : showSeconds(seconds)}`}
    </time>
  );
}
