/** Writes ops/grafana/dashboard.json. `npm run ops:dashboard` */
import { writeFile } from 'node:fs/promises';
import { dashboard, dashboardFile } from './dashboard.ts';

await writeFile(dashboardFile, dashboard());
console.log(`wrote ${dashboardFile}`);
