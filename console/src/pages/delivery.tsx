import type { Delivery } from '@posthorn/client';
import { useEffect } from 'react';
import { useQuery } from '../api/query.ts';
import { navigate } from '../router.tsx';
import { ErrorPage } from '../ui/notice.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { linkToDelivery } from './delivery-list.tsx';

/** Redirects to the page of the delivery's event, which shows the delivery. */
export function DeliveryPage({ id }: { id: string }) {
  const { data, error, refresh } = useQuery<Delivery>(`/v1/deliveries/${id}`);
  useEffect(() => {
    if (data !== undefined) navigate(linkToDelivery(data), { replace: true });
  }, [data]);
  if (error !== null) return <ErrorPage title="Delivery" error={error} onRetry={refresh} />;
  return (
    <h1>
      <Skeleton width={320} label="Delivery" />
    </h1>
  );
}
