export { AcceptMetrics } from './accept-metrics.ts';
export { AttemptMetrics } from './attempt-metrics.ts';
export { catalogue, definitionOf, type MetricName, metricNames } from './catalogue.ts';
export { CommitMetrics } from './commit-metrics.ts';
export { ConversionMetrics } from './conversion-metrics.ts';
export { addLabels, CONTENT_TYPE, processCounts, type Sample, toPrometheusText } from './exposition.ts';
export { KafkaMetrics } from './kafka-metrics.ts';
export { type Add, Metrics, type Source } from './metrics.ts';
export { ProcessMetrics } from './process-metrics.ts';
