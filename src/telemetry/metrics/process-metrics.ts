import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Source } from './metrics.ts';

/**
 * Interval of the timer that measures the event loop. The delay is the time beyond this interval. Every tick wakes the
 * process: with 20 ms, these were half of the wake-ups of an idle one.
 */
const RESOLUTION_MS = 100;
const STATS = { p50: 50, p99: 99, max: 100 };

/** Event loop, CPU and memory of this process. */
export class ProcessMetrics {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #lateSeconds: Readonly<Record<string, number>> = {};
  #before = performance.eventLoopUtilization();
  #utilization = 0;

  start(): void {
    this.#delays.enable();
  }

  stop(): void {
    this.#delays.disable();
  }

  /** Measures since the last call. Not done at scrapes, because one scraper would reset the values of another. */
  measure(): void {
    this.#lateSeconds = Object.fromEntries(
      Object.entries(STATS).map(([stat, percentile]) => {
        const ms = this.#delays.percentile(percentile) / 1e6;
        return [stat, Math.max(0, ms - RESOLUTION_MS) / 1000];
      }),
    );
    this.#delays.reset();
    const now = performance.eventLoopUtilization();
    this.#utilization = performance.eventLoopUtilization(now, this.#before).utilization;
    this.#before = now;
  }

  readonly source: Source = (add) => {
    for (const [stat, seconds] of Object.entries(this.#lateSeconds))
      add('posthorn_event_loop_delay_seconds', seconds, { stat });
    add('posthorn_event_loop_utilization', this.#utilization);
    const { user, system } = process.cpuUsage();
    add('process_cpu_seconds_total', (user + system) / 1e6);
    const { rss, heapUsed } = process.memoryUsage();
    add('process_resident_memory_bytes', rss);
    add('process_heap_bytes', heapUsed);
    add('process_start_time_seconds', performance.timeOrigin / 1000);
  };
}
