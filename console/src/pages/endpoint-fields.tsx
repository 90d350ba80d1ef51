/** The fields of the endpoint form, by section. */
import { usePermissions } from '../api/session.ts';
import { Checkbox, SelectField, TextArea, TextField } from '../ui/fields.tsx';
import { CredentialFields } from './endpoint-credentials.tsx';
import { createFieldBinder, FoldedSection, Section, type SectionProps } from './endpoint-form-section.tsx';
import { type FormSection, findSection } from './endpoint-labels.ts';
import { RetryFields } from './endpoint-retry-fields.tsx';
import { ShapingFields } from './endpoint-shaping-fields.tsx';
import {
  summarizeAccess,
  summarizeDelivery,
  summarizeRetries,
  summarizeSignature,
} from './endpoint-summaries.ts';
import { EventTypesField } from './event-types-field.tsx';
import { FilterMatchCount } from './filter-match-count.tsx';
import { VersionPreview } from './version-preview.tsx';

interface EndpointFieldsProps extends SectionProps {
  isNew: boolean;
}

export function EndpointFields(props: EndpointFieldsProps) {
  const { draft, onChange, errors } = props;
  const field = createFieldBinder(props);
  const hasError = (section: FormSection): boolean =>
    errors.some(({ path }) => findSection(path) === section);
  return (
    <>
      <DestinationSection {...props} />
      <FoldedSection
        title="Delivery"
        about="Timeout, concurrency, rate limit, region, order, batches and channels."
        summary={summarizeDelivery(draft)}
        hasError={hasError('delivery')}
      >
        <DeliveryFields {...props} />
      </FoldedSection>
      <FoldedSection
        title="Retries"
        about="When Posthorn retries a failed request, which responses it never retries, and when it pauses."
        summary={summarizeRetries(draft)}
        hasError={hasError('retries')}
      >
        <RetryFields {...props} />
        <BreakerFields {...props} />
      </FoldedSection>
      <FoldedSection
        title="Signature"
        about="How receivers verify that a request comes from you."
        summary={summarizeSignature(draft)}
        hasError={hasError('signature')}
      >
        <SignatureFields {...props} />
      </FoldedSection>
      <FoldedSection
        title="Access"
        about="Headers and credentials of every request. Credentials are stored encrypted and never shown again."
        summary={summarizeAccess(draft)}
        hasError={hasError('access')}
      >
        <ChallengeField {...props} />
        <CredentialFields draft={draft} onChange={onChange} errors={errors} />
      </FoldedSection>
      <FoldedSection
        title="Metadata"
        about="Your own notes as JSON. Posthorn stores them and does not send them."
        summary={draft.metadata.trim() === '' ? 'none' : draft.metadata.replace(/\s+/g, ' ').slice(0, 80)}
        hasError={hasError('metadata')}
      >
        <TextArea
          className="wide"
          rows={4}
          label="Metadata (JSON)"
          placeholder={'{ "team": "billing" }'}
          {...field('metadata')}
        />
      </FoldedSection>
    </>
  );
}

function DestinationSection(props: EndpointFieldsProps) {
  const { canSeeAllTenants } = usePermissions();
  const field = createFieldBinder(props);
  const hasTenantField = props.isNew && canSeeAllTenants;
  return (
    <Section title="Destination" about="The URL, and the events that are sent to it.">
      <TextField
        className="wide"
        label="URL"
        mono
        placeholder="https://example.com/webhooks"
        required
        {...field('url')}
      />
      {hasTenantField && (
        <TextField
          label="Tenant"
          placeholder="default"
          hint="Created if it does not exist."
          {...field('tenant')}
        />
      )}
      <TextField
        className={hasTenantField ? '' : 'wide'}
        label="Description"
        hint="The name of the endpoint in lists."
        {...field('description')}
      />
      <EventTypesField {...field('events')} />
      {props.isNew && (
        <div className="wide stack" style={{ gap: 4 }}>
          <TextArea
            label="Filter (JSON)"
            rows={3}
            hint="Sends only events with this content. If empty, all events of these types."
            placeholder={'{ "data.amount": { "$gte": 100 } }'}
            {...field('filter')}
          />
          <FilterMatchCount
            filter={props.draft.filter}
            events={props.draft.events}
            tenant={hasTenantField ? props.draft.tenant || 'default' : null}
          />
        </div>
      )}
    </Section>
  );
}

function ChallengeField(props: SectionProps) {
  const field = createFieldBinder(props);
  return (
    <SelectField
      className="wide"
      label="Challenge"
      options={[
        ['', 'None'],
        ['echo', 'Echo: the receiver returns a token'],
        ['cloudevents', 'CloudEvents: the receiver allows the origin'],
      ]}
      hint="How the receiver proves that it wants these events, before Posthorn accepts the URL."
      {...field('challenge')}
    />
  );
}

function DeliveryFields(props: SectionProps) {
  const field = createFieldBinder(props);
  return (
    <>
      <TextField
        className="wide"
        label="Channels"
        mono
        hint="If empty, the endpoint receives events of every channel."
        {...field('channels')}
      />
      <TextField
        label="Timeout (ms)"
        placeholder="15000"
        hint="1,000 to 30,000, for the whole request."
        {...field('timeout_ms')}
      />
      <TextField label="Concurrent requests" placeholder="10" {...field('max_in_flight')} />
      <SelectField
        className="wide"
        label="Adaptive limits"
        options={[
          ['on', 'On'],
          ['off', 'Off: always the timeout and the concurrency above'],
        ]}
        hint="While the endpoint is consistently slow, it gets fewer requests at a time. If requests also time out, their deadline becomes shorter. Both recover by themselves."
        {...field('adaptive')}
      />
      <TextField
        label="Rate limit (per second)"
        placeholder="no limit"
        {...field('rate_per_second', 'rate_limit')}
      />
      <TextField label="Burst" placeholder="same as the limit" {...field('rate_burst', 'rate_limit.burst')} />
      <TextField
        label="Region"
        placeholder="default"
        hint="The region whose workers send to it."
        {...field('region')}
      />
      <SelectField
        label="Ordering"
        options={[
          ['none', 'None: as fast as possible'],
          ['fifo', 'Strict: in order of acceptance'],
        ]}
        hint="With strict ordering, deliver_at has no effect."
        {...field('ordering')}
      />
      <SelectField
        label="When a delivery dies (strict ordering)"
        options={[
          ['skip', 'Continue with the next'],
          ['block', 'Block until it is replayed or discarded'],
        ]}
        {...field('fifo_on_dead')}
      />
      <ShapingFields {...props} />
      <SelectField
        label="Payload"
        options={[
          ['full', 'Full: with the data'],
          ['thin', 'Thin: a link to the data'],
        ]}
        {...field('payload')}
      />
      <TextField
        label="Redirects to follow"
        hint="0 to 3. Posthorn follows 307 and 308 only."
        {...field('follow_redirects')}
      />
      <TextField
        label="API version"
        placeholder="not pinned"
        hint="A version of your event types, such as 2026-04-01. Payloads in other versions are converted."
        {...field('api_version')}
      />
      {props.endpointId !== undefined && (
        <VersionPreview endpointId={props.endpointId} apiVersion={props.draft.api_version} />
      )}
    </>
  );
}

function BreakerFields(props: SectionProps) {
  const { draft, onChange } = props;
  const field = createFieldBinder(props);
  return (
    <>
      <div className="wide">
        <Checkbox
          checked={draft.breaker_on}
          onChange={(breaker_on) => onChange({ breaker_on })}
          hint="While the circuit is open, Posthorn sends nothing but one probe at a time. A probe that succeeds closes it."
        >
          Open the circuit when the endpoint keeps failing
        </Checkbox>
      </div>
      {draft.breaker_on && (
        <>
          <TextField
            label="Consecutive failures"
            placeholder="20"
            {...field('consecutive', 'breaker.consecutive')}
          />
          <TextField
            label="Failure rate (0 to 1)"
            placeholder="0.8"
            {...field('failure_rate', 'breaker.failure_rate')}
          />
          <TextField
            label="Minimum requests for the rate"
            placeholder="20"
            {...field('min_requests', 'breaker.min_requests')}
          />
          <TextField
            label="Window of the rate (s)"
            placeholder="600"
            {...field('window_seconds', 'breaker.window_seconds')}
          />
          <TextField
            label="Pause before a probe (s)"
            placeholder="30"
            {...field('cooldown_seconds', 'breaker.cooldown_seconds')}
          />
          <TextField
            label="Longest pause (s)"
            placeholder="3600"
            {...field('max_cooldown_seconds', 'breaker.max_cooldown_seconds')}
          />
        </>
      )}
    </>
  );
}

function SignatureFields(props: SectionProps) {
  const field = createFieldBinder(props);
  return (
    <>
      <SelectField
        label="Profile"
        options={[
          ['standard', 'Standard Webhooks (HMAC)'],
          ['standard-ed25519', 'Standard Webhooks (Ed25519)'],
          ['hex', 'Hex HMAC of the body'],
          ['stripe', 'Compatible with Stripe'],
          ['github', 'Compatible with GitHub'],
        ]}
        {...field('signature')}
      />
      <TextField
        label="Header"
        mono
        placeholder="default of the profile"
        {...field('signature_header', 'signature.header')}
      />
      <TextField
        label="Prefix"
        mono
        placeholder="default of the profile"
        {...field('signature_prefix', 'signature.prefix')}
      />
    </>
  );
}
