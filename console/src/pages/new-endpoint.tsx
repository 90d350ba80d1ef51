import { useMay } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Notice, PageHead } from '../ui/basics.tsx';
import { usePageTitle } from '../ui/title.ts';
import { EndpointForm } from './endpoint-form.tsx';

export function NewEndpointPage() {
  usePageTitle('New endpoint');
  const may = useMay();
  return (
    <>
      <PageHead crumb={<Link to="/endpoints">Endpoints</Link>} title="New endpoint" />
      {may.write ? <EndpointForm /> : <Notice tone="warn">This key may only read.</Notice>}
    </>
  );
}
