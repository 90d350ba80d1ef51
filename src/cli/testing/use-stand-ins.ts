/**
 * Loaded into the real program by `node --import`: replaces the app and the embedded database by stand-ins, so that
 * tests of the command line take milliseconds. The program itself has no code for tests.
 */
import { registerHooks } from 'node:module';

const standIns = new URL('./stand-ins.ts', import.meta.url).href;
const replaced = ['/src/app.ts', '/src/postgres/embedded/index.ts', '/src/postgres/migrate.ts'];
const keepsRealDatabase = process.env.TEST_REAL_DATABASE === '1';

registerHooks({
  resolve(specifier, context, next) {
    const fromCli = context.parentURL?.includes('/src/cli/') === true;
    if (fromCli && specifier.startsWith('../')) {
      const { pathname } = new URL(specifier, context.parentURL);
      const isApp = pathname.endsWith(replaced[0]!);
      if (replaced.some((each) => pathname.endsWith(each)) && (isApp || !keepsRealDatabase)) {
        return { url: standIns, format: 'module-typescript', shortCircuit: true };
      }
    }
    return next(specifier, context);
  },
});
