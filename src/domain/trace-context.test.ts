import { describe, expect, it } from 'vitest';
import { readTraceContext, traceContextOf, withTraceContext } from './trace-context.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('OBS-3: trace context', () => {
  it('is read unchanged', () => {
    expect(readTraceContext(PARENT, 'a=1,b=2')).toEqual({ traceparent: PARENT, tracestate: 'a=1,b=2' });
    expect(readTraceContext(PARENT, undefined)).toEqual({ traceparent: PARENT, tracestate: null });
    expect(readTraceContext(PARENT, 'x'.repeat(513))?.tracestate).toBe(null);
    expect(readTraceContext(PARENT, 'a=\u0001')?.tracestate).toBe(null);
  });

  it.each([
    undefined,
    ['a', 'b'],
    '',
    'none',
    PARENT.toUpperCase(),
    `${PARENT}-more`,
    `ff${PARENT.slice(2)}`,
    PARENT.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32)),
    PARENT.replace('b7ad6b7169203331', '0'.repeat(16)),
  ])('%s is invalid', (text) => {
    expect(readTraceContext(text, 'a=1')).toBe(null);
  });

  it('is found and replaced whatever the case of its name, and other headers stay', () => {
    const headers = { TraceParent: PARENT, TRACESTATE: 'a=1', 'x-other': 'stays' };
    expect(traceContextOf(headers)).toEqual({ traceparent: PARENT, tracestate: 'a=1' });
    const other = PARENT.replace('b7ad', 'c8be');
    expect(withTraceContext(headers, { traceparent: other, tracestate: null })).toEqual({
      'x-other': 'stays',
      traceparent: other,
    });
    expect(traceContextOf({ 'x-other': 'stays' })).toBe(null);
    expect(traceContextOf(null)).toBe(null);
  });
});
