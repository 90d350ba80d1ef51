import { storeFailureOf } from '../ports/store-error.ts';

/**
 * Returns a function that calls `work` with the size of a chunk, and halves the size while the store times out. The size stays
 * small for later calls. Throws what `work` throws if the size cannot be halved, or on another failure.
 */
export function halvingChunks(size: number, isStopped: () => boolean) {
  let max = size;
  return async <T>(work: (max: number) => Promise<T>): Promise<T> => {
    for (;;)
      try {
        return await work(max);
      } catch (error) {
        if (max === 1 || isStopped() || storeFailureOf(error) !== 'timeout') throw error;
        max = Math.ceil(max / 2);
      }
  };
}
