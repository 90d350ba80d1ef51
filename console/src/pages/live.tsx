/** Everything as it happens, for as long as the page is open. */
import { useEffect, useRef, useState } from 'react';
import { type ApiError, withQuery } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { openStream, type StreamMessage } from '../api/stream.ts';
import { Link } from '../router.tsx';
import { Badge, Button, Card, Empty, Failure, Notice, PageHead } from '../ui/basics.tsx';
import { showClock, showMs } from '../ui/format.ts';
import { usePageTitle } from '../ui/title.ts';
import { errorName } from '../ui/words.tsx';

interface Line {
  readonly key: number;
  readonly message: StreamMessage;
}

const MOST_LINES = 500;
/** Drawing a thousand lines a second helps nobody: what arrived is drawn a few times a second. */
const DRAW_EVERY_MS = 150;

export function LivePage() {
  usePageTitle('Live tail');
  const { shownTenant } = useSession();
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [paused, setPaused] = useState(false);
  const [text, setText] = useState('');
  const [kind, setKind] = useState('');
  const [state, setState] = useState<ApiError | null | 'connecting'>('connecting');
  const isPaused = useRef(paused);
  isPaused.current = paused;

  useEffect(() => {
    let arrived: Line[] = [];
    let last = 0;
    const close = openStream(withQuery('/v1/stream', { tenant: shownTenant }), {
      state: setState,
      message: (message) => {
        if (message.event === 'ready') return;
        last += 1;
        arrived.push({ key: last, message });
      },
    });
    const timer = setInterval(() => {
      if (arrived.length === 0 || isPaused.current) return;
      const fresh = arrived.slice(-MOST_LINES).reverse();
      arrived = [];
      setLines((before) => [...fresh, ...before].slice(0, MOST_LINES));
    }, DRAW_EVERY_MS);
    return () => {
      close();
      clearInterval(timer);
      setLines([]);
    };
  }, [shownTenant]);

  const needle = text.trim().toLowerCase();
  const shown = lines.filter(
    ({ message }) =>
      (kind === '' || kindOf(message) === kind) &&
      (needle === '' || JSON.stringify(message.data).toLowerCase().includes(needle)),
  );
  const failed = state !== null && state !== 'connecting';
  return (
    <>
      <PageHead title="Live tail">
        <Button icon={paused ? 'play' : 'pause'} onClick={() => setPaused(!paused)}>
          {paused ? 'Resume' : 'Pause'}
        </Button>
        <Button onClick={() => setLines([])}>Clear</Button>
      </PageHead>
      <Card>
        <div className="filters">
          <span className="row">
            <span className={`dot ${failed ? 'bad' : paused ? 'warn' : 'good live'}`} />
            {failed ? 'Not connected' : state === 'connecting' ? 'Connecting…' : paused ? 'Paused' : 'Live'}
          </span>
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
        {failed && state.status === 404 && (
          <div className="card-body">
            <Notice title="No live tail here">This server does not offer /v1/stream.</Notice>
          </div>
        )}
        {failed && state.status !== 404 && <Failure error={state} />}
        {shown.length === 0 ? (
          <Empty
            icon="live"
            title={lines.length === 0 ? 'Waiting for something to happen' : 'Nothing fits the filter'}
          >
            Events and attempts appear here the moment they happen.
          </Empty>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
          <div className="tail" role="log" aria-label="Live tail" tabIndex={0}>
            {shown.map(({ key, message }) => (
              <TailLine key={key} message={message} />
            ))}
          </div>
        )}
      </Card>
    </>
  );
}

const textOf = (value: unknown): string => (value === null || value === undefined ? '' : String(value));

function kindOf({ event, data }: StreamMessage): string {
  if (event === 'event.accepted') return 'accepted';
  if (event !== 'attempt') return event;
  return data.outcome === 'delivered' ? 'delivered' : 'failed';
}

/** What is new about an endpoint: the rest of the message, in short. */
function changeOf(data: Record<string, unknown>): string {
  const said = Object.entries(data).filter(
    ([name]) => !['endpoint_id', 'tenant', 'at', 'url'].includes(name),
  );
  return said.map(([name, value]) => `${name}: ${textOf(value)}`).join(' · ');
}

const GAPS: Record<string, string> = {
  dropped: 'This page was too slow for some lines',
  sampled: 'Too much at once: only some lines are shown',
};

function TailLine({ message }: { message: StreamMessage }) {
  const { event, data } = message;
  const at = textOf(data.at ?? data.created_at);
  const time = <span className="faint">{at === '' ? '' : showClock(at)}</span>;
  if (event === 'event.accepted')
    return (
      <div className="tail-row fresh">
        {time}
        <Badge tone="info">accepted</Badge>
        <Link to={`/events/${textOf(data.id)}`} className="truncate">
          {textOf(data.type)}
        </Link>
        <span className="faint truncate wide-only">{textOf(data.id)}</span>
        <span className="num faint wide-only">
          {data.deliveries === undefined ? '' : `→ ${textOf(data.deliveries)}`}
        </span>
      </div>
    );
  if (event === 'attempt') {
    const delivered = data.outcome === 'delivered';
    const code = data.status_code === null ? errorName(textOf(data.error_class)) : textOf(data.status_code);
    return (
      <div className="tail-row fresh">
        {time}
        <Badge tone={delivered ? 'good' : data.outcome === 'dead' ? 'bad' : 'warn'}>
          {textOf(data.outcome)}
        </Badge>
        <Link
          to={`/events/${textOf(data.event_id)}?delivery=${textOf(data.delivery_id)}`}
          className="truncate"
        >
          {textOf(data.event_type)}
        </Link>
        <span className="soft truncate wide-only">
          #{textOf(data.number)} · {code} ·{' '}
          <Link to={`/endpoints/${textOf(data.endpoint_id)}`}>{textOf(data.endpoint_id)}</Link>
        </span>
        <span className="num faint wide-only">{showMs(data.duration_ms as number | null)}</span>
      </div>
    );
  }
  if (event === 'endpoint')
    return (
      <div className="tail-row fresh">
        {time}
        <Badge tone="accent">endpoint</Badge>
        <Link to={`/endpoints/${textOf(data.endpoint_id)}`} className="truncate">
          {textOf(data.endpoint_id)}
        </Link>
        <span className="soft truncate wide-only">{changeOf(data)}</span>
      </div>
    );
  return (
    <div className="tail-row fresh">
      {time}
      <Badge tone={event in GAPS ? 'warn' : 'mute'}>{event}</Badge>
      <span className="truncate">{GAPS[event] ?? JSON.stringify(data)}</span>
    </div>
  );
}
