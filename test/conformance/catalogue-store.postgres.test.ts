import { describeCatalogueStore } from './catalogue-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeCatalogueStore('PostgreSQL', createPostgresFixture);
