/**
 * Loaded with `--import` into every process of Posthorn by profile.ts. The first SIGUSR2 starts a profile of the processor,
 * the second writes it to `BENCH_PROFILES/<role>.cpuprofile`.
 */
import { rename, writeFile } from 'node:fs/promises';
import { type Profiler, Session } from 'node:inspector/promises';

const folder = process.env.BENCH_PROFILES;
const role = process.env.POSTHORN_CHILD_ROLE;
if (folder !== undefined && role !== undefined) {
  let session: Session | null = null;
  process.on('SIGUSR2', async () => {
    if (session === null) {
      session = new Session();
      session.connect();
      await session.post('Profiler.enable');
      await session.post('Profiler.setSamplingInterval', { interval: 250 });
      await session.post('Profiler.start');
      return;
    }
    const { profile }: Profiler.StopReturnType = await session.post('Profiler.stop');
    // Renamed, so that the reader never sees a part of it.
    const file = `${folder}/${role}.cpuprofile`;
    await writeFile(`${file}.part`, JSON.stringify(profile));
    await rename(`${file}.part`, file);
  });
}
