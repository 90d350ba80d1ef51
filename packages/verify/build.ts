/** `node build.ts [output directory]` */
import { buildPackage } from '../build-package.ts';

buildPackage(import.meta.dirname, process.argv[2]);
