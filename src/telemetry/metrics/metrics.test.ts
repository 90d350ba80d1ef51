import { describe, expect, it } from 'vitest';
import type { WaitingDelivery } from '../../domain/delivery.ts';
import type { AttemptOutcome } from '../../domain/outcome.ts';
import { AttemptMetrics } from './attempt-metrics.ts';
import { catalogue, metricNames } from './catalogue.ts';
import { addLabels, type Sample, toPrometheusText } from './exposition.ts';
import { Histogram } from './histogram.ts';
import { Metrics } from './metrics.ts';

describe('Histogram', () => {
  it('counts a value in the first bucket whose bound it does not exceed', () => {
    const histogram = new Histogram([1, 5]);
    for (const value of [0.5, 1, 1.001, 5, 6]) histogram.observe(value);
    expect([...histogram.counts]).toEqual([2, 2, 1]);
    expect(histogram.sum).toBeCloseTo(13.501);
  });

  it('is exposed with cumulative buckets, sum and count', () => {
    const metrics = new Metrics();
    const histogram = new Histogram([1, 5]);
    for (const value of [0.5, 3, 7]) histogram.observe(value);
    metrics.addSource((add) => add.histogram('posthorn_commit_items', histogram, { stage: 'accept' }));
    expect(toPrometheusText(metrics.read())).toContain(
      `posthorn_commit_items_bucket{stage="accept",le="1"} 1
posthorn_commit_items_bucket{stage="accept",le="5"} 2
posthorn_commit_items_bucket{stage="accept",le="+Inf"} 3
posthorn_commit_items_sum{stage="accept"} 10.5
posthorn_commit_items_count{stage="accept"} 3
`,
    );
  });
});

describe('the Prometheus text', () => {
  it('lists every metric, with samples or without', () => {
    const text = toPrometheusText([]);
    for (const name of metricNames) expect(text).toContain(`# TYPE ${name} ${catalogue[name].type}\n`);
  });

  it('groups the samples of all processes by metric', () => {
    const one: Sample[] = [
      { name: 'posthorn_in_flight', labels: {}, value: 1 },
      { name: 'posthorn_unsettled', labels: {}, value: 2 },
    ];
    const text = toPrometheusText([...addLabels(one, { process: '1' }), ...addLabels(one, { process: '2' })]);
    expect(text).toContain(
      'posthorn_in_flight gauge\nposthorn_in_flight{process="1"} 1\nposthorn_in_flight{process="2"} 1\n',
    );
  });

  it('escapes characters that would end a label', () => {
    const text = toPrometheusText([
      { name: 'posthorn_dead_letters_by_tenant', labels: { tenant: 'a"b\\c\nd' }, value: 1 },
    ]);
    expect(text).toContain('posthorn_dead_letters_by_tenant{tenant="a\\"b\\\\c\\nd"} 1\n');
  });
});

describe('AttemptMetrics', () => {
  const delivery: WaitingDelivery = {
    id: '',
    endpointId: '',
    seq: 0,
    attempts: 2,
    attemptsBeforeReplay: 0,
    dueAt: null,
    agesFrom: 1_000,
    trigger: 'auto',
    lastErrorClass: null,
  };
  const outcome = (change: Partial<AttemptOutcome>): AttemptOutcome => ({
    startedAt: 5_000,
    durationMs: 500,
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
    statusCode: 200,
    error: null,
    url: '',
    requestHeaders: {},
    responseHeaders: null,
    responseBody: null,
    responseTruncated: false,
    retryAfterMs: null,
    ...change,
  });
  const read = (counted: AttemptMetrics): string => {
    const metrics = new Metrics();
    metrics.addSource(counted.source);
    return toPrometheusText(metrics.read());
  };

  it('counts attempts by event type and failures by reason, and measures the time from acceptance to delivery', () => {
    const counted = new AttemptMetrics({ eventTypes: 10 });
    counted.onAnswered('a.b', delivery, outcome({}), { kind: 'delivered' });
    counted.onAnswered(
      'a.b',
      delivery,
      outcome({ statusCode: 503, error: { class: 'http_5xx', message: '' } }),
      { kind: 'retry', dueAt: 1 },
    );
    counted.onAnswered(
      'a.b',
      delivery,
      outcome({ statusCode: null, error: { class: 'dns_failed', message: '' } }),
      { kind: 'dead', reason: 'exhausted', disableEndpoint: false },
    );
    counted.onSettling({ kind: 'dead', reason: 'worker_crash', disableEndpoint: false });
    const text = read(counted);
    expect(text).toContain('posthorn_attempts_total{event_type="a.b"} 3\n');
    expect(text).toContain('posthorn_attempts_succeeded_total{event_type="a.b"} 1\n');
    expect(text).toContain('posthorn_attempts_failed_total{event_type="a.b",reason="http_5xx"} 1\n');
    expect(text).toContain('posthorn_attempts_failed_total{event_type="a.b",reason="dns_failed"} 1\n');
    // Accepted at 1.0 s, answered at 5.5 s.
    expect(text).toContain('posthorn_delivery_latency_seconds_sum 4.5\n');
    // A request without a response has no response time.
    expect(text).toContain('posthorn_response_time_seconds_count 2\n');
    expect(text).toContain('posthorn_attempts_per_delivery_sum 6\n');
    expect(text).toContain('posthorn_deliveries_dead_total{reason="worker_crash"} 1\n');
  });

  it('counts only the first event types by name, and all others together', () => {
    const counted = new AttemptMetrics({ eventTypes: 2 });
    for (let n = 0; n < 1000; n += 1)
      counted.onAnswered(`made.up-${n}`, delivery, outcome({}), { kind: 'delivered' });
    counted.onAnswered('made.up-0', delivery, outcome({}), { kind: 'delivered' });
    const lines = read(counted).match(/^posthorn_attempts_total\{.*$/gm);
    expect(lines).toEqual([
      'posthorn_attempts_total{event_type="made.up-0"} 2',
      'posthorn_attempts_total{event_type="made.up-1"} 1',
      'posthorn_attempts_total{event_type="other"} 998',
    ]);
  });
});
