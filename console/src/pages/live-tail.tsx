/** Accepted events and attempts at the moment they happen. */
import { useEffect, useRef, useState } from 'react';
import { type ApiError, withQuery } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { openStream, type StreamMessage } from '../api/stream.ts';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { type EndpointName, useEndpointNames } from '../ui/endpoint-name.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { TailRow } from './live-tail-row.tsx';

interface TailLine {
  readonly key: number;
  readonly message: StreamMessage;
}

type ConnectionState = 'connecting' | 'connected' | ApiError;

const MAX_LINES = 500;
/** Lines are collected and rendered a few times a second: rendering each of a thousand per second would block the tab. */
const RENDER_EVERY_MS = 150;

export function LiveTailPage() {
  usePageTitle('Live tail');
  const [isPaused, setPaused] = useState(false);
  const { lines, state, clear } = useTail(isPaused);
  const [text, setText] = useState('');
  const [kind, setKind] = useState('');
  const nameEndpoint = useEndpointNames();
  const needle = text.trim().toLowerCase();
  const shown = lines.filter(
    ({ message }) =>
      (kind === '' || classifyMessage(message) === kind) &&
      (needle === '' || describeForSearch(message, nameEndpoint).includes(needle)),
  );
  return (
    <>
      <PageHeader title="Live tail">
        <Button icon={isPaused ? 'play' : 'pause'} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
        <Button onClick={clear}>Clear</Button>
      </PageHeader>
      <Card>
        <div className="filters">
          <ConnectionIndicator state={state} isPaused={isPaused} />
          <input
            className="input long mono"
            type="search"
            aria-label="Filter"
            placeholder="Type, id, endpoint…"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <select
            className="input"
            aria-label="Kind"
            value={kind}
            onChange={(event) => setKind(event.target.value)}
          >
            <option value="">Everything</option>
            <option value="accepted">Accepted events</option>
            <option value="delivered">Delivered</option>
            <option value="failed">Failed attempts</option>
          </select>
        </div>
        {typeof state !== 'string' && <ErrorNotice error={state} />}
        {shown.length === 0 ? (
          <EmptyState
            icon="live"
            title={lines.length === 0 ? 'Waiting for events' : 'No line matches the filter'}
          >
            Events and attempts appear here the moment they happen.
          </EmptyState>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
          <div className="tail" role="log" aria-label="Live tail" tabIndex={0}>
            {shown.map(({ key, message }) => (
              <TailRow key={key} message={message} nameEndpoint={nameEndpoint} />
            ))}
          </div>
        )}
      </Card>
    </>
  );
}

/** Follows the stream. While paused, lines are collected and shown later. */
function useTail(isPaused: boolean): {
  lines: readonly TailLine[];
  state: ConnectionState;
  clear: () => void;
} {
  const { selectedTenant } = useSession();
  const [lines, setLines] = useState<readonly TailLine[]>([]);
  const [state, setState] = useState<ConnectionState>('connecting');
  const isPausedRef = useRef(isPaused);
  isPausedRef.current = isPaused;
  useEffect(() => {
    let received: TailLine[] = [];
    let lastKey = 0;
    const closeStream = openStream(withQuery('/v1/stream', { tenant: selectedTenant }), {
      onStateChange: (error) => setState(error ?? 'connected'),
      onMessage: (message) => {
        if (message.event === 'ready') return;
        lastKey += 1;
        received.push({ key: lastKey, message });
      },
    });
    const timer = setInterval(() => {
      if (received.length === 0 || isPausedRef.current) return;
      const newest = received.slice(-MAX_LINES).reverse();
      received = [];
      setLines((before) => [...newest, ...before].slice(0, MAX_LINES));
    }, RENDER_EVERY_MS);
    return () => {
      closeStream();
      clearInterval(timer);
      setLines([]);
    };
  }, [selectedTenant]);
  return { lines, state, clear: () => setLines([]) };
}

function ConnectionIndicator({ state, isPaused }: { state: ConnectionState; isPaused: boolean }) {
  const isFailed = typeof state !== 'string';
  const tone = isFailed ? 'bad' : isPaused ? 'warn' : 'good live';
  const label = isFailed
    ? 'Not connected'
    : state === 'connecting'
      ? 'Connecting…'
      : isPaused
        ? 'Paused'
        : 'Live';
  return (
    <span className="row">
      <span className={`dot ${tone}`} />
      {label}
    </span>
  );
}

/** Everything that a filter can find: the data, and the name of the endpoint. */
function describeForSearch({ data }: StreamMessage, nameEndpoint: (id: string) => EndpointName): string {
  const endpointId = data.endpoint_id;
  const { name, detail } =
    typeof endpointId === 'string' ? nameEndpoint(endpointId) : { name: '', detail: null };
  return `${JSON.stringify(data)} ${name} ${detail ?? ''}`.toLowerCase();
}

function classifyMessage({ event, data }: StreamMessage): string {
  if (event === 'event.accepted') return 'accepted';
  if (event !== 'attempt') return event;
  return data.outcome === 'delivered' ? 'delivered' : 'failed';
}
