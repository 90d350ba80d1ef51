/** Every setting of an endpoint. The API checks it; what it says stands at the field that it is about. */
import { type FormEvent, type ReactNode, useState } from 'react';
import { type ApiError, call, type FieldError } from '../api/client.ts';
import { asApiError, invalidate } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { Endpoint } from '../api/types.ts';
import { navigate } from '../router.tsx';
import { Button } from '../ui/basics.tsx';
import { Check, errorAt, SelectField, TextArea, TextField } from '../ui/fields.tsx';
import { toast } from '../ui/toasts.tsx';
import { AccessFields } from './endpoint-access.tsx';
import { type Draft, DraftError, PRESETS, toDraft, toPatch, toSettings } from './endpoint-draft.ts';

/** Without an endpoint: for a new one. */
export function EndpointForm({ endpoint }: { endpoint?: Endpoint }) {
  const may = useMay();
  const { shownTenant } = useSession();
  const [before, setBefore] = useState(() => toDraft(endpoint ?? { tenant: shownTenant ?? '' }));
  const [draft, setDraft] = useState(before);
  const [error, setError] = useState<ApiError | null>(null);
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const [busy, setBusy] = useState(false);
  const changed = draft !== before && JSON.stringify(draft) !== JSON.stringify(before);
  const set = (changes: Partial<Draft>): void => setDraft((now) => ({ ...now, ...changes }));

  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    setErrors([]);
    try {
      if (endpoint === undefined) {
        const made = await call<Endpoint>(
          'POST',
          '/v1/endpoints',
          newSettings(draft, before, may.allTenants),
        );
        invalidate('/v1/endpoints', '/v1/stats', '/v1/tenants');
        toast('Endpoint added');
        navigate(`/endpoints/${made.id}`);
        return;
      }
      const saved = await call<Endpoint>('PATCH', `/v1/endpoints/${endpoint.id}`, toPatch(before, draft));
      const next = toDraft(saved);
      setBefore(next);
      setDraft(next);
      invalidate('/v1/endpoints');
      toast('Saved');
    } catch (failure) {
      if (failure instanceof DraftError) setErrors([{ path: failure.path, message: failure.message }]);
      else {
        setError(asApiError(failure));
        setErrors(asApiError(failure).errors);
      }
    } finally {
      setBusy(false);
    }
  };

  return (
    <form className="card" onSubmit={(event) => void save(event)}>
      <fieldset disabled={!may.write} style={{ border: 0, padding: 0, margin: 0, minWidth: 0 }}>
        <Fields draft={draft} set={set} errors={errors} isNew={endpoint === undefined} />
      </fieldset>
      {may.write && (
        <div className="form-foot">
          <div className="grow" role="alert">
            {(error !== null || errors.length > 0) && (
              <span className="field-error">
                {errors.length > 0
                  ? `${errors.length === 1 ? 'One field needs' : `${errors.length} fields need`} a change: ${errors.map(({ path }) => path).join(', ')}`
                  : error?.message}
              </span>
            )}
          </div>
          {endpoint !== undefined && changed && <Button onClick={() => setDraft(before)}>Reset</Button>}
          <Button type="submit" kind="primary" disabled={busy || (endpoint !== undefined && !changed)}>
            {busy ? 'Saving…' : endpoint === undefined ? 'Add endpoint' : 'Save changes'}
          </Button>
        </div>
      )}
    </form>
  );
}

/** What was not touched is left out, so that it follows the defaults. */
function newSettings(draft: Draft, untouched: Draft, namesTenant: boolean): Record<string, unknown> {
  const all = toSettings(draft);
  const usual = toSettings(untouched);
  const chosen = Object.entries(all).filter(
    ([name, value]) => name === 'url' || JSON.stringify(value) !== JSON.stringify(usual[name]),
  );
  return {
    ...Object.fromEntries(chosen),
    ...(namesTenant && draft.tenant.trim() !== '' && { tenant: draft.tenant.trim() }),
  };
}

function Section({ title, about, children }: { title: string; about: ReactNode; children: ReactNode }) {
  return (
    <section className="form-section">
      <div className="about">
        <h2>{title}</h2>
        <p>{about}</p>
      </div>
      <div className="form-grid">{children}</div>
    </section>
  );
}

interface FieldsProps {
  draft: Draft;
  set: (changes: Partial<Draft>) => void;
  errors: readonly FieldError[];
  isNew: boolean;
}

function Fields({ draft, set, errors, isNew }: FieldsProps) {
  const may = useMay();
  const at = (path: string) => errorAt(errors, path);
  const field = (name: keyof Draft & string, path: string = name) => ({
    value: draft[name] as string,
    onChange: (value: string) => set({ [name]: value } as Partial<Draft>),
    error: at(path),
  });
  return (
    <>
      <Section title="Destination" about="Where requests go, and which events are sent there.">
        <TextField
          className="wide"
          label="URL"
          mono
          placeholder="https://example.com/webhooks"
          required
          {...field('url')}
        />
        {isNew && may.allTenants && (
          <TextField label="Tenant" placeholder="default" hint="Made on first use." {...field('tenant')} />
        )}
        <TextField
          className={isNew && may.allTenants ? '' : 'wide'}
          label="Description"
          {...field('description')}
        />
        <TextField
          label="Event types"
          mono
          hint="Separated by commas; order.* takes all that begin so, * takes all."
          {...field('events')}
        />
        <TextField label="Channels" mono hint="Empty: whatever channel." {...field('channels')} />
        <SelectField
          label="Challenge"
          options={[
            ['', 'None'],
            ['echo', 'Echo: the receiver sends a word back'],
            ['cloudevents', 'CloudEvents: the receiver allows the origin'],
          ]}
          hint="What the receiver has to answer before the address is taken."
          {...field('challenge')}
        />
      </Section>
      <Section title="Delivery" about="How fast, how many at once, in which order.">
        <TextField
          label="Timeout (ms)"
          placeholder="15000"
          hint="1,000 to 30,000, for all of a request."
          {...field('timeout_ms')}
        />
        <TextField label="Requests at once" placeholder="10" {...field('max_in_flight')} />
        <TextField
          label="Rate limit (per second)"
          placeholder="no limit"
          {...field('rate_per_second', 'rate_limit')}
        />
        <TextField label="Burst" placeholder="as the limit" {...field('rate_burst', 'rate_limit.burst')} />
        <SelectField
          label="Ordering"
          options={[
            ['none', 'None: as fast as possible'],
            ['fifo', 'Strict: in order of acceptance'],
          ]}
          hint="Strict: what is scheduled for later comes at its turn, too."
          {...field('ordering')}
        />
        <SelectField
          label="When one dies (strict ordering)"
          options={[
            ['skip', 'Go on with the next'],
            ['block', 'Hold the rest until it is dealt with'],
          ]}
          {...field('fifo_on_dead')}
        />
        <SelectField
          label="Payload"
          options={[
            ['full', 'Full: with the data'],
            ['thin', 'Thin: a link to it'],
          ]}
          {...field('payload')}
        />
        <TextField
          label="Redirects to follow"
          hint="0 to 3; 307 and 308 only."
          {...field('follow_redirects')}
        />
        <TextField label="API version" placeholder="not pinned" {...field('api_version')} />
      </Section>
      <RetrySection draft={draft} set={set} field={field} at={at} />
      <Section
        title="Circuit breaker"
        about="After too many failures nothing is sent for a while; then a single probe finds out."
      >
        <div className="wide">
          <Check checked={draft.breaker_on} onChange={(breaker_on) => set({ breaker_on })}>
            Open the circuit when the endpoint keeps failing
          </Check>
        </div>
        {draft.breaker_on && (
          <>
            <TextField
              label="Failures in a row"
              placeholder="5"
              {...field('consecutive', 'breaker.consecutive')}
            />
            <TextField
              label="Share of failures"
              placeholder="0.5"
              {...field('failure_rate', 'breaker.failure_rate')}
            />
            <TextField
              label="Fewest requests for the share"
              placeholder="20"
              {...field('min_requests', 'breaker.min_requests')}
            />
            <TextField
              label="Window (s)"
              placeholder="600"
              {...field('window_seconds', 'breaker.window_seconds')}
            />
            <TextField
              label="Pause before a probe (s)"
              placeholder="300"
              {...field('cooldown_seconds', 'breaker.cooldown_seconds')}
            />
            <TextField
              label="Longest pause (s)"
              placeholder="3600"
              {...field('max_cooldown_seconds', 'breaker.max_cooldown_seconds')}
            />
          </>
        )}
      </Section>
      <Section title="Signature" about="How receivers can tell that a request is from you.">
        <SelectField
          label="Profile"
          options={[
            ['standard', 'Standard Webhooks (HMAC)'],
            ['standard-ed25519', 'Standard Webhooks (ed25519)'],
            ['hex', 'Hex of the body'],
            ['stripe', 'Like Stripe'],
            ['github', 'Like GitHub'],
          ]}
          value={draft.signature}
          onChange={(signature) => set({ signature })}
          error={at('signature')}
        />
        <TextField
          label="Header"
          mono
          placeholder="the profile's own"
          {...field('signature_header', 'signature.header')}
        />
        <TextField
          label="Prefix"
          mono
          placeholder="the profile's own"
          {...field('signature_prefix', 'signature.prefix')}
        />
      </Section>
      <Section
        title="Headers and access"
        about="Sent with every request. Credentials are encrypted, and never shown again."
      >
        <AccessFields draft={draft} set={set} errors={errors} />
      </Section>
      <Section title="Metadata" about="Whatever you want to find here again. Not sent.">
        <TextArea
          className="wide"
          rows={4}
          label="Metadata (JSON)"
          placeholder={'{ "team": "billing" }'}
          {...field('metadata')}
        />
      </Section>
    </>
  );
}

type FieldOf = (
  name: keyof Draft & string,
  path?: string,
) => { value: string; onChange: (value: string) => void; error: string | undefined };

function RetrySection({
  draft,
  set,
  field,
  at,
}: Pick<FieldsProps, 'draft' | 'set'> & { field: FieldOf; at: (path: string) => string | undefined }) {
  return (
    <Section title="Retries" about="When a failed request is tried again, and what is not worth trying.">
      <SelectField
        label="Policy"
        value={draft.retry_kind}
        onChange={(retry_kind) => set({ retry_kind })}
        options={[
          ['preset', 'A preset'],
          ['schedule', 'A schedule of my own'],
          ['exponential', 'Exponential backoff'],
        ]}
        error={draft.retry_kind === 'preset' ? at('retry') : undefined}
      />
      {draft.retry_kind === 'preset' && (
        <SelectField
          label="Preset"
          options={PRESETS}
          value={draft.preset as 'default'}
          onChange={(preset) => set({ preset })}
        />
      )}
      {draft.retry_kind === 'schedule' && (
        <TextField
          className="wide"
          label="Seconds before each attempt"
          mono
          hint="The first included: 0, 30, 300 makes three attempts."
          {...field('schedule', 'retry.schedule')}
        />
      )}
      {draft.retry_kind === 'exponential' && (
        <>
          <TextField label="First retry after (s)" {...field('base', 'retry.base')} />
          <TextField label="Factor" placeholder="2" {...field('factor', 'retry.factor')} />
          <TextField label="Longest wait (s)" placeholder="86400" {...field('max', 'retry.max')} />
          <TextField label="Attempts" placeholder="10" {...field('attempts', 'retry.attempts')} />
        </>
      )}
      <SelectField
        label="Jitter"
        options={[
          ['', 'Default'],
          ['proportional', 'Proportional'],
          ['full', 'Full'],
          ['equal', 'Equal'],
          ['none', 'None'],
        ]}
        {...field('jitter', 'retry.jitter')}
      />
      <TextField
        label="Give up after (s)"
        placeholder="259200"
        {...field('max_age_seconds', 'retry.max_age_seconds')}
      />
      <TextField
        label="Never retry on"
        mono
        placeholder="3xx, 4xx"
        {...field('permanent', 'retry.permanent')}
      />
      <TextField
        label="But do retry on"
        mono
        placeholder="408, 425, 429"
        {...field('transient', 'retry.transient')}
      />
    </Section>
  );
}
