/**
 * Notices: operational events for people (docs/notices.md, docs/adr/0019-notifiers.md). A notifier posts them to a chat or
 * sends them by e-mail, several in one message.
 */
import type { Uuid } from './ids.ts';
import { type OperationalType, operationalTypes } from './operational.ts';

export const notifierKinds = ['slack', 'email'] as const;
export type NotifierKind = (typeof notifierKinds)[number];

/** A notifier as it is stored: in the configuration of the endpoint that sends its messages. */
export interface NotifierConfig {
  readonly kind: NotifierKind;
  /** The operational events that it reports. */
  readonly events: readonly string[];
  /** Until the owner of an e-mail address has agreed: identifies the confirmation that was sent. */
  readonly confirmation?: string;
  /** When the owner of the address agreed, in milliseconds since 1970. */
  readonly confirmed_at?: number;
}

/** The event types of messages to notifiers. No endpoint can subscribe to them. */
export const noticeTypes = {
  digest: 'posthorn.notice',
  confirmation: 'posthorn.notifier.confirmation',
} as const;
export type NoticeType = (typeof noticeTypes)[keyof typeof noticeTypes];

export const isNoticeType = (type: string): boolean => Object.values<string>(noticeTypes).includes(type);

/** What happened, in one line. */
export interface NoticeItem {
  /** Null: it concerns the whole deployment. */
  readonly tenant: string | null;
  readonly at: string;
  readonly text: string;
  readonly url: string;
}

/** Notices of one type. */
export interface NoticeGroup {
  readonly type: OperationalType;
  /** How many things happened: several dead letters of an endpoint are one item. */
  readonly count: number;
  /** How many items there were. */
  readonly reports: number;
  /** The first few items. */
  readonly items: readonly NoticeItem[];
}

/** The `data` of a `posthorn.notice` event. */
export interface Digest {
  readonly since: string;
  readonly until: string;
  readonly groups: readonly NoticeGroup[];
  readonly test?: true;
}

/** How many items of a group are stored and sent. The others are only counted. */
export const MAX_ITEMS = 10;

/** A notice that waits for the end of its notifier's window. */
export interface PendingNotice {
  readonly notifierId: Uuid;
  readonly type: OperationalType;
  readonly count: number;
  readonly item: NoticeItem;
}

type Payload = Readonly<Record<string, unknown>>;

interface AboutEndpoint {
  readonly tenant: string;
  readonly at: string;
  readonly endpoint: {
    readonly id: string;
    readonly host: string | null;
    readonly description: string;
    readonly disabled_reason: string | null;
    readonly console_url: string;
  };
}

/** Returns how many things an operational event reports. */
export function countOf(type: OperationalType, data: Payload): number {
  const isCounted = type === operationalTypes.deliveryDead || type === operationalTypes.deadLettersExpired;
  return isCounted && typeof data.count === 'number' ? data.count : 1;
}

/** Returns the line for an operational event with this payload (src/upkeep/operational-payloads.ts). */
export function itemOf(type: OperationalType, data: Payload): NoticeItem {
  const detail = DETAILS[type](data);
  if (!('endpoint' in data))
    return { tenant: null, at: String(data.at), text: detail, url: String(data.console_url ?? '') };
  const { tenant, at, endpoint } = data as unknown as AboutEndpoint;
  return {
    tenant,
    at,
    text: [nameOf(endpoint), detail].filter((part) => part !== '').join(': '),
    url: endpoint.console_url,
  };
}

const MAX_NAME = 80;

/** Tenants choose descriptions. A description must not look like another line of the message. */
function nameOf({ description, host, id }: AboutEndpoint['endpoint']): string {
  const name = oneLine(description);
  if (name === '') return host ?? id;
  return host === null ? name : `${name} (${host})`;
}

const oneLine = (text: string): string =>
  text
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, MAX_NAME);

const lastAnswer = ({ status_code: status, error_class: error }: Payload): string =>
  typeof status === 'number' ? `status ${status}` : String(error ?? 'unknown');

const counted = (count: unknown, one: string, many: string): string =>
  `${String(count)} ${count === 1 ? one : many}`;

const DETAILS: Readonly<Record<OperationalType, (data: Payload) => string>> = {
  [operationalTypes.endpointDisabled]: ({ reason }) => `reason ${String(reason)}`,
  [operationalTypes.endpointEnabled]: () => '',
  [operationalTypes.endpointLimited]: ({ in_flight_limit, effective_timeout_ms }) =>
    `slow: ${counted(in_flight_limit, 'request', 'requests')} at a time, deadline ${String(effective_timeout_ms)} ms`,
  [operationalTypes.endpointUnlimited]: ({ limited_since }) => `was slow since ${String(limited_since)}`,
  [operationalTypes.circuitOpened]: (data) =>
    `${counted(data.consecutive_failures, 'failure', 'failures')} in a row, last ${lastAnswer(data)}`,
  [operationalTypes.circuitClosed]: ({ opened_at }) => `failed since ${String(opened_at)}`,
  [operationalTypes.deliveryDead]: ({ count, last }) =>
    `${counted(count, 'dead letter', 'dead letters')}, last ${lastAnswer((last ?? {}) as Payload)}`,
  [operationalTypes.deadLettersExpired]: ({ count }) =>
    `${counted(count, 'dead letter', 'dead letters')} discarded`,
  [operationalTypes.deadLettersThreshold]: ({ state, dead_letters, threshold }) =>
    `${counted(dead_letters, 'dead letter', 'dead letters')}, ${String(state)} the threshold of ${String(threshold)}`,
  [operationalTypes.queueAge]: ({ state, oldest_age_seconds, threshold_seconds }) =>
    `the oldest delivery has waited ${String(oldest_age_seconds)} s, ${String(state)} the threshold of ${String(threshold_seconds)} s`,
  [operationalTypes.archiveFailed]: ({ state, error }) =>
    error === null ? String(state) : `${String(state)}: ${String(error)}`,
  [operationalTypes.versionSunset]: ({ event_type, version, pinned }) =>
    `${String(event_type)} ${String(version)}, ${counted(pinned, 'endpoint pins it', 'endpoints pin it')}`,
  [operationalTypes.eventTypeSunset]: ({ event_type, subscribed }) =>
    `${String(event_type)}, ${counted(subscribed, 'endpoint subscribes', 'endpoints subscribe')}`,
};

/** The words after a count of one, and after other counts. */
const HEADINGS: Readonly<Record<OperationalType, readonly [one: string, many: string]>> = {
  [operationalTypes.endpointDisabled]: ['endpoint disabled', 'endpoints disabled'],
  [operationalTypes.endpointEnabled]: ['endpoint enabled', 'endpoints enabled'],
  [operationalTypes.endpointLimited]: ['slow endpoint limited', 'slow endpoints limited'],
  [operationalTypes.endpointUnlimited]: ['endpoint no longer slow', 'endpoints no longer slow'],
  [operationalTypes.circuitOpened]: ['endpoint failing (circuit open)', 'endpoints failing (circuit open)'],
  [operationalTypes.circuitClosed]: ['endpoint recovered', 'endpoints recovered'],
  [operationalTypes.deliveryDead]: ['dead letter', 'dead letters'],
  [operationalTypes.deadLettersExpired]: ['dead letter expired', 'dead letters expired'],
  [operationalTypes.deadLettersThreshold]: [
    'change of the number of dead letters',
    'changes of the number of dead letters',
  ],
  [operationalTypes.queueAge]: ['change of the queue age', 'changes of the queue age'],
  [operationalTypes.archiveFailed]: ['change of the archive', 'changes of the archive'],
  [operationalTypes.versionSunset]: ['version past its sunset', 'versions past their sunset'],
  [operationalTypes.eventTypeSunset]: ['event type past its sunset', 'event types past their sunset'],
};

const headingOf = ({ type, count }: NoticeGroup): string => {
  const [one, many] = HEADINGS[type] ?? [type, type];
  return `${count} ${count === 1 ? one : many}`;
};

/** One line that sums a message up: the subject of an e-mail. */
export const summaryOf = (digest: Digest): string =>
  digest.test === true ? 'Test message' : digest.groups.map(headingOf).join(', ');

const TEST_TEXT = 'This is a test message. Notices of this notifier will look like this one.';

/** How a kind of message writes its parts. */
interface Style {
  text(text: string): string;
  heading(text: string): string;
  link(url: string): string;
}

/** An invisible character. It splits text that a chat or a mail program would read as a mention or a link. */
const ZERO_WIDTH_SPACE = '\u200b';

/** Mail programs make links of plain URLs. A description, which a tenant chooses, must not become a link. */
const PLAIN: Style = {
  text: (text) => text.replaceAll(/:(?=\/\/)/g, `:${ZERO_WIDTH_SPACE}`),
  heading: (text) => text,
  link: (url) => `\n    ${url}`,
};

/**
 * Slack's mrkdwn: three characters are escaped, so that texts contain neither links nor mentions. Other chats read Markdown
 * and plain mentions (`@everyone`, `[text](url)`, addresses), so these are split, and there is no code.
 */
const SLACK: Style = {
  text: (text) =>
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('`', "'")
      .replaceAll(/@|\](?=[([])|:(?=\/\/)/g, (found) => found + ZERO_WIDTH_SPACE),
  heading: (text) => `*${text}*`,
  link: (url) => ` <${url}|Open>`,
};

function render(digest: Digest, style: Style): string {
  if (digest.test === true) return TEST_TEXT;
  const needsHeadings = digest.groups.length > 1;
  return digest.groups
    .map((group) => {
      const lines = group.items.map(
        ({ tenant, text, url }) =>
          `• ${style.text(tenant === null ? text : `${tenant}: ${text}`)}${url === '' ? '' : style.link(url)}`,
      );
      const left = group.reports - group.items.length;
      if (left > 0) lines.push(`… and ${left} more`);
      return [...(needsHeadings ? [style.heading(headingOf(group))] : []), ...lines].join('\n');
    })
    .join('\n\n');
}

/** The body of a request to a Slack-compatible webhook. */
export const slackBody = (digest: Digest): string =>
  JSON.stringify({ text: `*Posthorn: ${SLACK.text(summaryOf(digest))}*\n${render(digest, SLACK)}` });

/** The text of an e-mail. */
export const mailText = (digest: Digest): string => `${render(digest, PLAIN)}\n`;

export const CONFIRMATION_SUBJECT = 'Confirm that you want notices';

export const confirmationText = (tenant: string, publicUrl: string, link: string): string =>
  [
    `The tenant "${tenant}" of the webhook service at ${publicUrl} wants to send notices to this address.`,
    '',
    'If you want them, open this link and confirm:',
    '',
    link,
    '',
    'If not, do nothing. You will get no further message.',
    '',
  ].join('\n');
