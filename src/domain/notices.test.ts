import { describe, expect, it } from 'vitest';
import { countOf, type Digest, itemOf, mailText, slackBody, summaryOf } from './notices.ts';
import { operationalTypes } from './operational.ts';

const endpoint = {
  id: 'ep_1',
  host: 'hooks.acme.example',
  description: 'orders',
  disabled_reason: null,
  console_url: 'https://posthorn.test/console/endpoints/ep_1',
};
const about = { tenant: 'acme', at: '2027-01-15T08:00:00.000Z', endpoint };

describe('OBS-4: the text of notices', () => {
  it('says in one line what happened to which endpoint', () => {
    const opened = { ...about, consecutive_failures: 5, status_code: 503, error_class: 'http_5xx' };
    expect(itemOf(operationalTypes.circuitOpened, opened)).toEqual({
      tenant: 'acme',
      at: about.at,
      text: 'orders (hooks.acme.example): 5 failures in a row, last status 503',
      url: endpoint.console_url,
    });
    const timedOut = { ...opened, consecutive_failures: 1, status_code: null, error_class: 'timeout' };
    expect(itemOf(operationalTypes.circuitOpened, timedOut).text).toContain(
      '1 failure in a row, last timeout',
    );
    const dead = { ...about, count: 412, last: { status_code: 404, error_class: 'http_4xx' } };
    expect(itemOf(operationalTypes.deliveryDead, dead).text).toContain('412 dead letters, last status 404');
    expect(countOf(operationalTypes.deliveryDead, dead)).toBe(412);
    expect(itemOf(operationalTypes.endpointEnabled, about).text).toBe('orders (hooks.acme.example)');
    const nameless = { ...about, endpoint: { ...endpoint, description: ' \n', host: null }, reason: 'gone' };
    expect(itemOf(operationalTypes.endpointDisabled, nameless).text).toBe('ep_1: reason gone');
    const level = {
      at: about.at,
      state: 'above',
      threshold: 100,
      dead_letters: 100,
      console_url: 'https://x',
    };
    expect(itemOf(operationalTypes.deadLettersThreshold, level)).toMatchObject({
      tenant: null,
      text: '100 dead letters, above the threshold of 100',
    });
  });

  it('has a heading for each kind if there are several, and counts what it leaves out', () => {
    const item = itemOf(operationalTypes.endpointEnabled, about);
    const digest: Digest = {
      since: about.at,
      until: about.at,
      groups: [
        { type: operationalTypes.circuitOpened, count: 12, reports: 12, items: [item] },
        { type: operationalTypes.deliveryDead, count: 1, reports: 1, items: [item] },
      ],
    };
    expect(summaryOf(digest)).toBe('12 endpoints failing (circuit open), 1 dead letter');
    expect(mailText(digest)).toBe(`12 endpoints failing (circuit open)
• acme: orders (hooks.acme.example)
    ${endpoint.console_url}
… and 11 more

1 dead letter
• acme: orders (hooks.acme.example)
    ${endpoint.console_url}
`);
  });

  it('is text in a chat: descriptions contain neither links, mentions nor lines', () => {
    const description = '<!channel> <https://evil.example|click>\n*bold* & \u202emore';
    const item = itemOf(operationalTypes.endpointEnabled, {
      ...about,
      endpoint: { ...endpoint, description },
    });
    const group = { type: operationalTypes.endpointEnabled, count: 1, reports: 1, items: [item] };
    const { text } = JSON.parse(slackBody({ since: '', until: '', groups: [group] }));
    expect(text.split('\n')).toHaveLength(2);
    expect(text.match(/<[^>]*>/g)).toEqual([`<${endpoint.console_url}|Open>`]);
    expect(text).not.toContain('\u202e');
  });

  it('OBS-4: mentions nobody and links nowhere in chats that read Markdown', () => {
    const description = '@everyone @here @channel [pay](https://evil.example) ![x][y] ```code`';
    const item = itemOf(operationalTypes.endpointEnabled, {
      ...about,
      tenant: '@all',
      endpoint: { ...endpoint, description },
    });
    const group = { type: operationalTypes.endpointEnabled, count: 1, reports: 1, items: [item] };
    const { text } = JSON.parse(slackBody({ since: '', until: '', groups: [group] }));
    expect(text).not.toMatch(/@\w|\]\(|\]\[|`/);
    // Only our own link is left.
    expect(text.match(/\w+:\/\/[^|]*/g)).toEqual([endpoint.console_url]);
    // It reads as before.
    expect(text.replaceAll('\u200b', '')).toContain('@everyone @here @channel [pay](https://evil.example)');
  });
});
