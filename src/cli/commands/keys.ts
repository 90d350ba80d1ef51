import type { Arguments } from '../arguments.ts';
import type { Command } from '../command.ts';
import { print, printError } from '../print.ts';
import { ServerApi } from '../server-api.ts';
import { UsageError } from '../usage-error.ts';

/** Options of `keys create`, and the fields of the API that they set. */
const FIELDS = {
  scope: 'scope',
  tenant: 'tenant',
  description: 'description',
  scopes: 'scopes',
  'expires-at': 'expires_at',
  'allowed-ips': 'allowed_ips',
} as const;
const LISTS = new Set<string>(['scopes', 'allowed-ips']);

export const keys: Command = {
  name: 'keys',
  summary: 'create an API key on a running server',
  usage:
    'posthorn keys create --scope admin|tenant|read [--tenant acme] [--scopes events:publish,events:read] [--expires-at 2027-12-31T00:00:00Z] [--allowed-ips 203.0.113.0/24] [--description text] [--json]',
  about: `Creates a key on the server at POSTHORN_PUBLIC_URL, with POSTHORN_ADMIN_KEY or the admin key that \`dev\` has generated.
Prints the key, which cannot be shown again; with --json the whole answer. Lists are separated by commas. docs/keys.md explains
scopes and restrictions.`,
  actions: ['create'],
  options: Object.keys(FIELDS),
  takesJson: true,
  async run(args) {
    if (args.positionals[1] !== 'create') throw new UsageError(`Usage: ${keys.usage}`);
    const server = await ServerApi.open(args);
    const answer = await server.call('POST', '/v1/keys', bodyOf(args));
    if (!answer.ok) {
      printError(await describeProblem(answer));
      return 1;
    }
    const created = (await answer.json()) as { readonly key: string };
    print(args.wantsJson ? JSON.stringify(created, null, 2) : created.key);
    return 0;
  },
};

function bodyOf({ options }: Arguments): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const [option, field] of Object.entries(FIELDS)) {
    const value = options[option];
    if (value === undefined) continue;
    body[field] = LISTS.has(option) ? value.split(',').map((item) => item.trim()) : value;
  }
  return body;
}

async function describeProblem(answer: Response): Promise<string> {
  const problem = (await answer.json().catch(() => null)) as { readonly detail?: string } | null;
  return `The key was not created (${answer.status}): ${problem?.detail ?? answer.statusText}`;
}
