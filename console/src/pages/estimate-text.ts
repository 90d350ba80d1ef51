import type { RequestEstimate } from '@posthorn/client';
import { formatCount, formatMinute, formatSeconds, plural } from '../ui/format.ts';

/** "In the last hour this would have sent 312 requests instead of 41,200." */
export function describeEstimate(estimate: RequestEstimate): string {
  const { events, requests, since, until, examined, is_complete } = estimate;
  const seconds = (Date.parse(until) - Date.parse(since)) / 1000;
  if (examined === 0) return 'There are no events of the last hour to estimate the effect on.';
  const period = is_complete ? 'the last hour' : `the last ${formatSeconds(Math.max(1, seconds))}`;
  const note = is_complete
    ? ''
    : ` There are too many events to look at the whole hour: this covers the newest ${plural(examined, 'event')}, since ${formatMinute(since)}.`;
  if (events === 0) return `In ${period} the endpoint would have got no events.${note}`;
  return `In ${period} this would have sent ${plural(requests, 'request')} instead of ${formatCount(events)}, if the receiver had answered at once.${note}`;
}
