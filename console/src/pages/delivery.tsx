import { useEffect } from 'react';
import { useQuery } from '../api/query.ts';
import type { Delivery } from '../api/types.ts';
import { navigate } from '../router.tsx';
import { Card, Failure, Skeleton } from '../ui/basics.tsx';
import { toDelivery } from './delivery-list.tsx';

/** A delivery is shown with its event: this only finds out which. */
export function DeliveryPage({ id }: { id: string }) {
  const { data, error, refresh } = useQuery<Delivery>(`/v1/deliveries/${id}`);
  useEffect(() => {
    if (data !== undefined) navigate(toDelivery(data), { replace: true });
  }, [data]);
  if (error !== null)
    return (
      <Card>
        <h1 className="sr-only">Delivery</h1>
        <Failure error={error} retry={refresh} />
      </Card>
    );
  return (
    <h1>
      <Skeleton width={320} label="Delivery" />
    </h1>
  );
}
