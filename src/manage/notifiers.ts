/**
 * Notifiers: where notices about endpoints and deliveries go (docs/notices.md). A notifier is stored as an endpoint that the
 * routes of endpoints do not show, so that its messages are deliveries like all others (docs/adr/0019-notifiers.md).
 */
import { randomUUID } from 'node:crypto';
import { type EgressPolicy, maskTarget } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import type { RetryConfig } from '../domain/endpoint-config.ts';
import { matchesType } from '../domain/event.ts';
import { idPrefixes, newEventId, newId, publicId, type Uuid } from '../domain/ids.ts';
import { type Digest, type NotifierConfig, type NotifierKind, noticeTypes } from '../domain/notices.ts';
import { operationalTypes } from '../domain/operational.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { readTenant } from '../ingest/index.ts';
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { insertOwnAuditEntry } from '../postgres/queries/audit-log.ts';
import { maySendConfirmation } from '../postgres/queries/confirmation-mails.ts';
import type { DeliveryView } from '../postgres/queries/deliveries.ts';
import {
  addSecret,
  announceChanges,
  createEndpoint,
  type EndpointView,
} from '../postgres/queries/endpoints.ts';
import {
  confirmNotifier,
  countNotifiers,
  deleteNotifier,
  findNotifier,
  type NotifierView,
  secondsToNextTest,
} from '../postgres/queries/notifiers.ts';
import { publishOperational } from '../postgres/queries/operational-events.ts';
import { hasEarlierWorkers } from '../postgres/queries/ownership.ts';
import { openUrl, sealUrl } from '../postgres/sealed-settings.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { Actor, Caller } from './caller.ts';
import { CONFIRMATION_LIMITS, type Confirmations, hashOf } from './confirmations.ts';
import { isBelow } from './endpoint-challenges.ts';
import { type EndpointLimits, reserveEndpoint } from './endpoint-limits.ts';
import { normalizeUrl } from './endpoint-patch.ts';
import { notFound } from './object-ids.ts';
import { checkOperatorChange } from './operator-access.ts';
import { generateSecret } from './signing-secrets.ts';
import type { TestEvents } from './test-events.ts';

export interface NotifierOptions {
  readonly confirmations: Confirmations;
  /** Whether there is a mail server. */
  readonly hasMail: boolean;
  /** If tenants must prove that receivers want requests: hosts of chats, which cannot answer a challenge. */
  readonly chatHosts: readonly string[];
  readonly requiresChallenge: boolean;
}

export interface NotifierDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly endpoints: EndpointCache;
  readonly secretBox: SecretBox;
  readonly egress: EgressPolicy;
  readonly operatorTenant: string;
  readonly endpointLimits: EndpointLimits;
  readonly notifiers: NotifierOptions;
}

export interface NewNotifier {
  readonly kind: NotifierKind;
  readonly tenant?: string;
  readonly operator?: boolean;
  readonly url?: string;
  readonly address?: string;
  readonly events?: readonly string[];
  readonly description?: string;
}

const MAX_PER_TENANT = 20;
const EVERY_EVENT = ['posthorn.*'];
/** Seconds. Old notices are of little use: after four hours they are dead letters. */
const RETRY: RetryConfig = { schedule: [0, 30, 300, 1800, 7200], max_age_seconds: 14_400 };
/** For e-mail, because all tenants share the mail server. Replays count too. */
const MAIL_PACE = { max_in_flight: 1, rate_limit: { per_second: 1, burst: 5 } };
/** Per minute. */
const TEST_LIMITS = { perNotifier: 5, perTenant: 20 } as const;
const TEST = { test: true } satisfies Partial<Digest>;

export class Notifiers {
  readonly #dependencies: NotifierDependencies;
  readonly #testEvents: TestEvents;

  constructor(dependencies: NotifierDependencies & { readonly testEvents: TestEvents }) {
    this.#dependencies = dependencies;
    this.#testEvents = dependencies.testEvents;
  }

  /** Creates a notifier. One of a tenant with an e-mail address gets nothing but a confirmation until it is confirmed. */
  async create({ caller, audit }: Actor, input: NewNotifier): Promise<NotifierView> {
    const { pool, clock, endpoints, secretBox, operatorTenant, endpointLimits } = this.#dependencies;
    const operator = input.operator ?? false;
    const isForOperator = operator && caller.tenant === null;
    const tenant = readTenant(input.tenant ?? (isForOperator ? operatorTenant : undefined), caller.tenant);
    checkOperatorChange(caller, { tenant, before: false, after: operator }, operatorTenant);
    const url = this.#readTarget(caller, input);
    if (await hasEarlierWorkers(pool))
      throw new Problem(
        'conflict',
        'A node of the previous release is running. It would send notices in a wrong format: replace all nodes first.',
      );
    const notifier = this.#configOf(input, operator);
    const id = newId(clock.now());
    const shownUrl = maskTarget(url);
    const endpoint = { id, tenant, url: shownUrl, description: input.description ?? '', metadata: {} };
    const config = {
      events: [noticeTypes.digest],
      retry: RETRY,
      ...(notifier.kind === 'email' && MAIL_PACE),
      notifier,
      ...(operator && { operator }),
    };
    await inTransaction(pool, async (client) => {
      await reserveEndpoint(client, tenant, endpointLimits.perTenant);
      if ((await countNotifiers(client, tenant)) >= MAX_PER_TENANT)
        throw invalidField('tenant', `may have at most ${MAX_PER_TENANT} notifiers: delete some`);
      await createEndpoint(client, {
        ...endpoint,
        config: sealUrl(config, url, id, secretBox),
        enabled: true,
        paused: false,
      });
      const sealed = secretBox.seal(generateSecret('standard'), id);
      await addSecret(client, { id: newId(clock.now()), endpointId: id, sealed });
      if (notifier.confirmation !== undefined) await this.#askForConfirmation(client, { id, tenant, url });
      await audit.record(client, {
        action: 'notifier.create',
        tenant,
        objectId: publicId(idPrefixes.notifier, id),
        changes: [
          { field: 'kind', after: notifier.kind },
          { field: 'target', after: shownUrl },
          { field: 'events', after: notifier.events },
          { field: 'operator', after: operator },
        ],
      });
      await announceChanges(client, [id]);
    });
    await endpoints.refresh();
    return (await findNotifier(pool, id, null))!;
  }

  /** Where the messages of a notifier go: the whole URL. */
  urlOf(notifier: NotifierView): string {
    return openUrl(notifier, this.#dependencies.secretBox);
  }

  /** Deletes a notifier. Its history stays, with the masked URL or address. */
  async delete({ caller, audit }: Actor, id: Uuid): Promise<void> {
    const { pool, endpoints } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const notifier = await findNotifier(client, id, caller.tenant);
      if (notifier === null) throw notFound('notifier', id);
      await deleteNotifier(client, id, maskTarget(notifier.url));
      await audit.record(client, {
        action: 'notifier.delete',
        tenant: notifier.tenant,
        objectId: publicId(idPrefixes.notifier, id),
      });
      await announceChanges(client, [id]);
    });
    await endpoints.refresh();
  }

  /**
   * Sends a test message at once, and returns its delivery. Throws `conflict` if it is disabled or its address not confirmed,
   * `rate_limited` after too many tests.
   */
  async sendTest(actor: Actor, id: Uuid): Promise<DeliveryView> {
    const notifier = await findNotifier(this.#dependencies.pool, id, actor.caller.tenant);
    if (notifier === null) throw notFound('notifier', id);
    if (!notifier.enabled)
      throw new Problem('conflict', 'The notifier is disabled. Delete it, and create it again.');
    if (notifier.config.notifier.confirmation !== undefined)
      throw new Problem(
        'conflict',
        'The address is not confirmed. Its owner must open the link in the message that was sent to it.',
      );
    const content = { type: noticeTypes.digest, data: JSON.stringify(TEST) };
    const objectId = publicId(idPrefixes.notifier, id);
    const refuseMany = async (client: Client): Promise<void> => {
      const about = { tenant: notifier.tenant, objectId, now: this.#dependencies.clock.now() };
      const retryAfterSeconds = await secondsToNextTest(client, about, TEST_LIMITS);
      if (retryAfterSeconds === null) return;
      throw new Problem(
        'rate_limited',
        `A notifier sends at most ${TEST_LIMITS.perNotifier} test messages in a minute, a tenant ${TEST_LIMITS.perTenant}.`,
        { retryAfterSeconds },
      );
    };
    return this.#testEvents.sendTo(
      actor,
      notifier,
      content,
      { action: 'notifier.test', objectId },
      refuseMany,
    );
  }

  /** Whether the link is valid and unused. */
  async isConfirmable(token: string): Promise<boolean> {
    const read = this.#dependencies.notifiers.confirmations.read(token);
    if (read === null) return false;
    const notifier = await findNotifier(this.#dependencies.pool, read.notifierId, null);
    return notifier?.config.notifier.confirmation === read.confirmation;
  }

  /** Confirms the address of a notifier. Returns false if the link is invalid, expired or was used. */
  async confirm(token: string): Promise<boolean> {
    const { pool, clock, endpoints, notifiers } = this.#dependencies;
    const read = notifiers.confirmations.read(token);
    if (read === null) return false;
    const isConfirmed = await inTransaction(pool, async (client) => {
      const tenant = await confirmNotifier(client, read.notifierId, read.confirmation, clock.now());
      if (tenant === null) return false;
      await insertOwnAuditEntry(client, {
        action: 'notifier.confirm',
        tenant,
        objectId: publicId(idPrefixes.notifier, read.notifierId),
        changes: [],
      });
      await announceChanges(client, [read.notifierId]);
      return true;
    });
    if (isConfirmed) await endpoints.refresh();
    return isConfirmed;
  }

  #configOf({ kind, events }: NewNotifier, operator: boolean): NotifierConfig {
    const types = Object.values(operationalTypes);
    for (const [index, pattern] of (events ?? []).entries())
      if (!types.some((type) => matchesType(pattern, type)))
        throw invalidField(
          `events[${index}]`,
          `"${pattern}" matches no operational event: use "posthorn.*" or one of ${types.join(', ')}`,
        );
    const needsConfirmation = kind === 'email' && !operator;
    return {
      kind,
      events: events ?? EVERY_EVENT,
      ...(needsConfirmation && { confirmation: randomUUID() }),
    };
  }

  /** Returns the URL that the messages go to. Throws `invalid`, `url_invalid` or `url_forbidden`. */
  #readTarget(caller: Caller, { kind, url, address }: NewNotifier): string {
    const { egress, notifiers } = this.#dependencies;
    if (kind === 'slack') {
      if (url === undefined) throw invalidField('url', 'is required: the URL of the webhook');
      if (address !== undefined) throw invalidField('address', 'is for notifiers of the kind "email"');
      const checked = normalizeUrl(url, egress);
      this.#checkChatHost(caller, checked);
      return checked;
    }
    if (!notifiers.hasMail)
      throw invalidField('kind', '"email" needs a mail server: the operator must set POSTHORN_SMTP_URL');
    if (address === undefined) throw invalidField('address', 'is required: an e-mail address');
    if (url !== undefined) throw invalidField('url', 'is for notifiers of the kind "slack"');
    return `mailto:${encodeURIComponent(address).replaceAll('%40', '@')}`;
  }

  /** Only a host that agreed may get requests, if the operator requires that. */
  #checkChatHost({ scope }: Caller, url: string): void {
    const { requiresChallenge, chatHosts } = this.#dependencies.notifiers;
    const host = new URL(url).hostname;
    if (!requiresChallenge || scope === 'admin' || chatHosts.some((name) => isBelow(host, name))) return;
    throw invalidField(
      'url',
      `must be on one of the hosts that the operator allows (${chatHosts.join(', ')}): ask for "${host}" in POSTHORN_NOTIFIER_HOSTS`,
    );
  }

  async #askForConfirmation(
    client: Client,
    { id, tenant, url }: Pick<EndpointView, 'id' | 'tenant' | 'url'>,
  ): Promise<void> {
    const sender = { tenant, addressHash: hashOf(url) };
    if (!(await maySendConfirmation(client, sender, CONFIRMATION_LIMITS)))
      throw new Problem(
        'rate_limited',
        'Too many confirmations were sent to this address or by this tenant. Try again tomorrow.',
        { retryAfterSeconds: 86_400 },
      );
    const eventId = newEventId(this.#dependencies.clock.now());
    const event = { id: eventId, tenant, type: noticeTypes.confirmation, data: {}, endpointIds: [id] };
    await publishOperational(client, [event]);
  }
}
