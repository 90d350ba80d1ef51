/**
 * Takes the place of src/convert/import-module.ts in the single-file executable, whose own code cannot import files. Code that `vm`
 * compiles can.
 */
import vm from 'node:vm';

type Import = (url: string) => Promise<Record<string, unknown>>;

export const importModule: Import = vm.runInThisContext('(url) => import(url)', {
  importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
}) as Import;
