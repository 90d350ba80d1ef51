import { Badge } from './badge.tsx';

/** The status code of a response; null: there was no response. */
export function HttpStatusBadge({ code }: { code: number | null }) {
  if (code === null) return <Badge tone="bad">no response</Badge>;
  const tone = code >= 200 && code < 300 ? 'good' : code >= 500 || code < 200 ? 'bad' : 'warn';
  return (
    <Badge tone={tone} code>
      {code}
    </Badge>
  );
}
