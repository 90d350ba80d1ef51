import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Source } from './metrics.ts';

/** How often the event loop is looked at; what it is late beyond that is its delay. */
const RESOLUTION_MS = 20;
const QUANTILES = [0.5, 0.99, 1];

/** How busy this process is, and what it uses. */
export class ProcessMetrics {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #lateSeconds = QUANTILES.map(() => 0);
  #before = performance.eventLoopUtilization();
  #utilization = 0;

  start(): void {
    this.#delays.enable();
  }

  stop(): void {
    this.#delays.disable();
  }

  /** Between two measurements: whoever reads out must not reset what somebody else is about to read. */
  measure(): void {
    this.#lateSeconds = QUANTILES.map((quantile) => {
      const ms = (quantile === 1 ? this.#delays.max : this.#delays.percentile(quantile * 100)) / 1e6;
      return Math.max(0, ms - RESOLUTION_MS) / 1000;
    });
    this.#delays.reset();
    const now = performance.eventLoopUtilization();
    this.#utilization = performance.eventLoopUtilization(now, this.#before).utilization;
    this.#before = now;
  }

  readonly source: Source = (add) => {
    for (const [index, quantile] of QUANTILES.entries())
      add('posthorn_event_loop_delay_seconds', this.#lateSeconds[index]!, { quantile: String(quantile) });
    add('posthorn_event_loop_utilization', this.#utilization);
    const { user, system } = process.cpuUsage();
    add('process_cpu_seconds_total', (user + system) / 1e6);
    const { rss, heapUsed } = process.memoryUsage();
    add('process_resident_memory_bytes', rss);
    add('process_heap_bytes', heapUsed);
    add('process_start_time_seconds', performance.timeOrigin / 1000);
  };
}
