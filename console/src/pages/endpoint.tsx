import { type ReactNode, useState } from 'react';
import { call } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { useMay } from '../api/session.ts';
import type { Endpoint, Stats } from '../api/types.ts';
import { Link, navigate, usePlace } from '../router.tsx';
import { Badge, Button, Card, Copy, Failure, Notice, PageHead, Skeleton, Tabs } from '../ui/basics.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { plural, shortUrl, showCount, showMs, showRate } from '../ui/format.ts';
import { Ago, Countdown } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';
import { toast, toastError } from '../ui/toasts.tsx';
import { useKept } from '../ui/use-kept.ts';
import { CircuitBadge, endpointState } from '../ui/words.tsx';
import { FailureChart, LatencyChart, SuccessChart, ThroughputChart } from './charts.tsx';
import { DeliveryList } from './delivery-list.tsx';
import { FilterEditor } from './endpoint-filter.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { SecretCard } from './endpoint-secret.tsx';
import { useWindow, WindowChoice } from './overview.tsx';
import { TestDialog } from './test-event.tsx';

const TABS = [
  ['overview', 'Overview'],
  ['deliveries', 'Deliveries'],
  ['filter', 'Filter'],
  ['configuration', 'Configuration'],
] as const;

export function EndpointPage({ id }: { id: string }) {
  const { query } = usePlace();
  const endpoint = useQuery<Endpoint>(`/v1/endpoints/${id}`, { pollMs: 3_000 });
  const { data } = endpoint;
  usePageTitle(data === undefined ? 'Endpoint' : shortUrl(data.url));
  const tab = TABS.find(([name]) => name === query.get('tab'))?.[0] ?? 'overview';
  if (data === undefined && endpoint.error !== null)
    return (
      <Card>
        <h1 className="sr-only">Endpoint</h1>
        <Failure error={endpoint.error} retry={endpoint.refresh} />
      </Card>
    );
  return (
    <>
      <PageHead
        crumb={<Link to="/endpoints">Endpoints</Link>}
        title={
          data === undefined ? (
            <Skeleton width={320} label="Endpoint" />
          ) : (
            <span className="truncate">{shortUrl(data.url)}</span>
          )
        }
        below={
          <div className="row wrap small faint" style={{ minHeight: 24 }}>
            {data !== undefined && <StateBadge endpoint={data} />}
            <Copy text={id} />
            {data !== undefined && <span>{data.tenant}</span>}
            {data?.description && <span>{data.description}</span>}
          </div>
        }
      >
        {data !== undefined && <Actions endpoint={data} />}
      </PageHead>
      <Tabs
        tabs={TABS}
        current={tab}
        to={(name) => `/endpoints/${id}${name === 'overview' ? '' : `?tab=${name}`}`}
      />
      {tab === 'overview' && <Overview id={id} endpoint={data} />}
      {tab === 'deliveries' && (
        <Card>
          <DeliveryList path={`/v1/endpoints/${id}/deliveries`} />
        </Card>
      )}
      {tab === 'filter' && data !== undefined && <FilterEditor endpoint={data} />}
      {tab === 'configuration' && data !== undefined && (
        <div className="grid">
          <SecretCard endpoint={data} />
          <EndpointForm key={data.id} endpoint={data} />
        </div>
      )}
    </>
  );
}

function StateBadge({ endpoint }: { endpoint: Endpoint }) {
  const [name, tone, why] = endpointState(endpoint);
  return (
    <>
      <Badge tone={tone}>{name}</Badge>
      {why !== '' && <span>{why}</span>}
    </>
  );
}

function Actions({ endpoint }: { endpoint: Endpoint }) {
  const may = useMay();
  const [dialog, setDialog] = useState<'test' | 'delete' | 'replay' | null>(null);
  if (!may.write) return null;
  const { id, paused, enabled } = endpoint;
  const change = async (done: string, work: Promise<unknown>): Promise<void> => {
    try {
      await work;
      invalidate('/v1/endpoints');
      toast(done);
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <>
      <Button icon="send" kind="primary" disabled={!enabled} onClick={() => setDialog('test')}>
        Send test event
      </Button>
      {enabled && (
        <Button
          icon={paused ? 'play' : 'pause'}
          onClick={() =>
            void change(
              paused ? 'Resumed' : 'Paused: what arrives now waits',
              call('POST', `/v1/endpoints/${id}/${paused ? 'resume' : 'pause'}`),
            )
          }
        >
          {paused ? 'Resume' : 'Pause'}
        </Button>
      )}
      <Button
        onClick={() =>
          void change(
            enabled ? 'Disabled: new events skip it' : 'Enabled',
            call('PATCH', `/v1/endpoints/${id}`, { enabled: !enabled }),
          )
        }
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button icon="replay" disabled={!enabled} onClick={() => setDialog('replay')}>
        Replay…
      </Button>
      <Button icon="trash" kind="danger" label="Delete endpoint" onClick={() => setDialog('delete')} />
      {dialog === 'test' && <TestDialog endpoint={endpoint} onClose={() => setDialog(null)} />}
      {dialog === 'replay' && <ReplayDialog endpoint={endpoint} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && (
        <FormDialog
          title="Delete this endpoint?"
          submit="Delete endpoint"
          danger
          onClose={() => setDialog(null)}
          onSubmit={async () => {
            await call('DELETE', `/v1/endpoints/${id}`);
            invalidate('/v1/endpoints');
            toast('Endpoint deleted');
            navigate('/endpoints');
          }}
        >
          <p>
            <strong>{shortUrl(endpoint.url)}</strong> gets nothing any more, and what waits for it is skipped.
            Its history stays readable. This cannot be undone.
          </p>
          {endpoint.health.waiting > 0 && (
            <Notice tone="warn">
              {plural(endpoint.health.waiting, 'delivery is', 'deliveries are')} waiting for it.
            </Notice>
          )}
        </FormDialog>
      )}
    </>
  );
}

function ReplayDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [hours, setHours] = useState('24');
  const since = hours === '' ? undefined : new Date(Date.now() - Number(hours) * 3_600_000).toISOString();
  return (
    <FormDialog
      title="Replay what did not get through"
      submit="Start replay"
      onClose={onClose}
      onSubmit={async () => {
        const task = await call<{ id: string }>('POST', `/v1/endpoints/${endpoint.id}/replay`, { since });
        navigate(`/dead-letters?task=${task.id}`);
      }}
    >
      <p className="soft">Dead and skipped deliveries of this endpoint are sent again, in the background.</p>
      <div className="field">
        <label htmlFor="replay-hours">Accepted in the last</label>
        <select
          id="replay-hours"
          className="input"
          value={hours}
          onChange={(event) => setHours(event.target.value)}
        >
          <option value="1">hour</option>
          <option value="24">24 hours</option>
          <option value="168">7 days</option>
          <option value="">at any time</option>
        </select>
      </div>
    </FormDialog>
  );
}

function Overview({ id, endpoint }: { id: string; endpoint: Endpoint | undefined }) {
  const window = useWindow('1h');
  const { data } = useQuery<Stats>(`/v1/endpoints/${id}/stats?window=${window}`, { pollMs: 5_000 });
  const stats = useKept(data, id);
  return (
    <div className="grid">
      <div className="grid aside">
        <Card title="Requests" actions={<WindowChoice value={window} />}>
          <div className="grid two">
            <ThroughputChart stats={stats} />
            <LatencyChart stats={stats} />
            <SuccessChart stats={stats} />
            <FailureChart stats={stats} />
          </div>
        </Card>
        <div className="grid">
          <HealthCard endpoint={endpoint} />
        </div>
      </div>
      <RecentDeliveries id={id} />
    </div>
  );
}

function HealthCard({ endpoint }: { endpoint: Endpoint | undefined }) {
  const health = endpoint?.health;
  const fact = (name: string, value: ReactNode) => (
    <>
      <dt>{name}</dt>
      <dd>{health === undefined ? <Skeleton width={80} /> : value}</dd>
    </>
  );
  return (
    <Card title="Health">
      <dl className="facts card-body">
        {fact('Circuit', health && <CircuitBadge circuit={health.circuit} />)}
        {health?.circuit !== 'closed' &&
          fact('Next probe', health?.next_probe_at ? <Countdown at={health.next_probe_at} /> : 'soon')}
        {fact('Failures in a row', health && showCount(health.consecutive_failures))}
        {fact('Success, 24 h', showRate(health?.success_rate))}
        {fact(
          'p50 · p95 · p99',
          health && `${showMs(health.p50_ms)} · ${showMs(health.p95_ms)} · ${showMs(health.p99_ms)}`,
        )}
        {fact('Waiting', health && showCount(health.waiting))}
        {fact('Oldest', <Ago at={health?.oldest_waiting_at} />)}
        {fact(
          'Dead letters',
          health &&
            (health.dead === 0 ? (
              '0'
            ) : (
              <Link to={`/dead-letters?endpoint_id=${endpoint!.id}`}>{showCount(health.dead)}</Link>
            )),
        )}
        {fact('Subscribes to', endpoint && <span className="mono">{endpoint.events.join(', ')}</span>)}
        {fact('Created', <Ago at={endpoint?.created_at} />)}
      </dl>
    </Card>
  );
}

function RecentDeliveries({ id }: { id: string }) {
  return (
    <Card
      title="Recent deliveries"
      actions={<Link to={`/endpoints/${id}?tab=deliveries`}>All deliveries</Link>}
    >
      <DeliveryList path={`/v1/endpoints/${id}/deliveries`} brief />
    </Card>
  );
}
