/** The signing secret of a new endpoint, shown once, with the code that verifies it. */
import type { CreatedEndpoint } from '@posthorn/client';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { EndpointWarnings } from './endpoint-warnings.tsx';
import { buildVerifySnippet } from './verify-snippet.ts';

export function NewSecretDialog({ endpoint, onClose }: { endpoint: CreatedEndpoint; onClose: () => void }) {
  const { secret, public_key: publicKey, warnings = [] } = endpoint;
  const verifier = secret ?? publicKey;
  return (
    <Dialog title="Endpoint added" onClose={onClose} wide>
      <div className="dialog-body stack">
        <EndpointWarnings warnings={warnings} />
        <p>
          {secret === null
            ? 'The receiver verifies each request with this public key.'
            : 'The receiver verifies each request with this secret. Copy it now, or reveal it later under Configuration.'}
        </p>
        {verifier !== null && (
          <div>
            <CopyButton text={verifier} label={secret === null ? 'the public key' : 'the secret'} />
          </div>
        )}
        <p className="soft">A receiver with Express and the package @posthorn/verify:</p>
        <CodeBlock text={buildVerifySnippet(endpoint.signature)} label="receiver" />
      </div>
      <div className="dialog-foot">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
