import type { FieldError } from '../api/client.ts';
import { Notice } from '../ui/notice.tsx';
import { labelField, translateMessage } from './endpoint-labels.ts';

/** What the API warns about after a change of an endpoint: the settings are valid and probably a mistake. */
export function EndpointWarnings({ warnings }: { warnings: readonly FieldError[] }) {
  return warnings.map((warning) => (
    <Notice key={`${warning.path}${warning.message}`} tone="warn" title={labelField(warning.path)}>
      {translateMessage(warning)}
    </Notice>
  ));
}
