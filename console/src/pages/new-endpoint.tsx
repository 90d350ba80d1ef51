import { usePermissions } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { EndpointForm } from './endpoint-form.tsx';

export function NewEndpointPage() {
  usePageTitle('New endpoint');
  const { canEditEndpoints } = usePermissions();
  return (
    <>
      <PageHeader crumb={<Link to="/endpoints">Endpoints</Link>} title="New endpoint" />
      {canEditEndpoints ? <EndpointForm /> : <Notice tone="warn">This key is read-only.</Notice>}
    </>
  );
}
