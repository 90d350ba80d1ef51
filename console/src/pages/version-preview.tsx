import type { VersionPreview as Preview, PreviewedPayload } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { asApiError } from '../api/query.ts';
import { Button } from '../ui/button.tsx';
import { JsonBlock } from '../ui/code-block.tsx';

interface VersionPreviewProps {
  endpointId: string;
  /** As it is in the form. '': not pinned. */
  apiVersion: string;
}

/** Both payloads of a recent event side by side: with the pin that is saved, and with the one in the form. */
export function VersionPreview({ endpointId, apiVersion }: VersionPreviewProps) {
  const [preview, setPreview] = useState<Preview | null>(null);
  const [problem, setProblem] = useState('');
  const load = async (): Promise<void> => {
    setProblem('');
    const proposed = apiVersion.trim() === '' ? null : apiVersion.trim();
    try {
      const body = { api_version: proposed };
      setPreview(await callApi<Preview>('POST', `/v1/endpoints/${endpointId}/preview`, body));
    } catch (error) {
      setPreview(null);
      setProblem(asApiError(error).message);
    }
  };
  return (
    <div className="wide">
      <Button onClick={() => void load()}>Compare payloads of a recent event</Button>
      <span className="field-error" role="alert">
        {problem}
      </span>
      {preview !== null && (
        <>
          <p className="small soft">
            {preview.event_type}, event {preview.event_id}. Nothing is sent or changed.
          </p>
          <div className="form-grid">
            <PayloadOf title="Now" payload={preview.current} />
            <PayloadOf title="With this version" payload={preview.proposed} />
          </div>
        </>
      )}
    </div>
  );
}

function PayloadOf({ title, payload }: { title: string; payload: PreviewedPayload }) {
  return (
    <div>
      <p className="small">
        <strong>{title}</strong>: {describe(payload)}
      </p>
      {payload.error === null ? (
        <JsonBlock text={JSON.stringify(payload.data)} label={title} />
      ) : (
        <p className="field-error">{payload.error.message}</p>
      )}
    </div>
  );
}

function describe({ version, conversion, error }: PreviewedPayload): string {
  if (error !== null) return 'the conversion fails';
  const name = version ?? 'no version';
  if (conversion === null) return `${name}, as published`;
  if (conversion.status === 'converted') return `converted from ${conversion.from} to ${conversion.to}`;
  const reasons = {
    no_versions: 'the type has no versions',
    no_matching_version: 'no version fits',
    no_converter: 'no converter leads there',
  };
  return `${name}, as published: ${reasons[conversion.reason]}`;
}
