import type { Endpoint, RotatedSecret } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { findFieldError, SelectField, TextField } from '../ui/fields.tsx';
import { Notice } from '../ui/notice.tsx';
import { TimeField } from '../ui/time-range-fields.tsx';

const NO_OVERLAP = '0';
const OVERLAPS = [
  ['', 'Server default (24 hours unless configured)'],
  ['3600', '1 hour'],
  ['86400', '24 hours'],
  ['604800', '7 days'],
  ['null', 'Until I revoke the old secret'],
  [NO_OVERLAP, 'None: the old secret stops now'],
] as const;

const PRIMARIES = [
  ['old', 'The old secret, until it ends or the new one takes over'],
  ['new', 'The new secret, from now on'],
] as const;

interface RotateSecretDialogProps {
  endpoint: Endpoint;
  onClose: () => void;
  onRotated: (secret: RotatedSecret) => void;
}

export function RotateSecretDialog({ endpoint, onClose, onRotated }: RotateSecretDialogProps) {
  const [primary, setPrimary] = useState<'old' | 'new'>('old');
  const [switchAt, setSwitchAt] = useState('');
  const [overlap, setOverlap] = useState<string>('');
  const [ownSecret, setOwnSecret] = useState('');
  const hasOverlap = overlap !== NO_OVERLAP;
  const hasMainHeader = hasOneSignature(endpoint) && hasOverlap;
  const isOldFirst = hasMainHeader && primary === 'old';
  const isPublic = endpoint.public_key !== null;
  return (
    <FormDialog
      title={isPublic ? 'Rotate the signing key' : 'Rotate the signing secret'}
      submitLabel={isPublic ? 'Rotate key' : 'Rotate secret'}
      onClose={onClose}
      onSubmit={async () =>
        onRotated(
          await callApi<RotatedSecret>('POST', `/v1/endpoints/${endpoint.id}/rotate-secret`, {
            ...(overlap !== '' && { overlap_seconds: overlap === 'null' ? null : Number(overlap) }),
            ...(hasMainHeader && { primary }),
            ...(isOldFirst && switchAt !== '' && { switch_at: switchAt }),
            ...(ownSecret.trim() !== '' && { secret: ownSecret.trim() }),
          }),
        )
      }
    >
      {(error) => (
        <>
          <p className="soft">{describeRotation({ hasOverlap, isOldFirst, hasSwitch: switchAt !== '' })}</p>
          <SelectField
            label="Overlap"
            value={overlap}
            onChange={setOverlap}
            options={OVERLAPS}
            error={findFieldError(error?.errors ?? [], 'overlap_seconds')}
          />
          {hasMainHeader && (
            <SelectField
              label="Main signature header"
              value={primary}
              onChange={setPrimary}
              options={PRIMARIES}
              hint="The main header has room for one signature. The other secret signs another header."
            />
          )}
          {isOldFirst && (
            <div className="field">
              <span className="field-label">The new secret takes over at (optional)</span>
              <TimeField label="The new secret takes over at" value={switchAt} onChange={setSwitchAt} />
              <span className="field-error">{findFieldError(error?.errors ?? [], 'switch_at')}</span>
            </div>
          )}
          {!hasOverlap && (
            <Notice tone="warn">Receivers with the old secret will reject every request from now on.</Notice>
          )}
          <TextField
            label="Your own secret (optional)"
            mono
            value={ownSecret}
            onChange={setOwnSecret}
            placeholder={isPublic ? 'whsk_…' : 'whsec_…'}
            hint="If empty, Posthorn generates one."
            error={findFieldError(error?.errors ?? [], 'secret')}
          />
        </>
      )}
    </FormDialog>
  );
}

/** Whether the header of the endpoint's signature has room for one secret only. */
function hasOneSignature({ signature }: Endpoint): boolean {
  const profile = typeof signature === 'string' ? signature : signature.profile;
  return profile === 'github' || profile === 'hex';
}

interface RotationChoice {
  hasOverlap: boolean;
  /** The old secret keeps signing the main header. */
  isOldFirst: boolean;
  hasSwitch: boolean;
}

function describeRotation({ hasOverlap, isOldFirst, hasSwitch }: RotationChoice): string {
  if (!hasOverlap) return 'The new secret signs from now on, and the old one stops.';
  if (!isOldFirst)
    return 'The new secret signs from now on. During the overlap both secrets sign every request, so you can update your receivers one by one.';
  const until = hasSwitch ? 'until the new secret takes over' : 'until the overlap ends';
  return `The old secret keeps signing the main header ${until}. Meanwhile the new secret signs another header.`;
}
