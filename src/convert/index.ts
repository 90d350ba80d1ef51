/** The public interface of the convert stage. */
export type { Converter, ConverterKey, Converters, PosthornConfig } from './config-file.ts';
export {
  type ConversionObserver,
  Conversions,
  type ConversionsOptions,
  type ConversionTrial,
  describeBusy,
  type Preview,
} from './conversions.ts';
export type { ConverterPool, PoolAnswer, PoolRequest } from './converter-pool.ts';
export { loadConverters, type RunningConverters } from './load-converters.ts';
