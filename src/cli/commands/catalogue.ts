import type { Command } from '../command.ts';

export const catalogue: Command = {
  name: 'catalogue',
  summary: 'keep the catalogue of event types in a file, and generate types from it',
  usage:
    'posthorn catalogue pull [file] [--json] | push <file> | diff <file> | types [file]   (file: .yaml or .json)',
  about: `Works on the server at POSTHORN_PUBLIC_URL, with POSTHORN_ADMIN_KEY or the admin key that \`dev\` has generated.
pull writes the catalogue to the file or prints it. push creates and replaces what the file has; it deletes nothing. diff shows
what push would change, and fails if push would be refused. types prints TypeScript types for receivers. The file may also be an
OpenAPI 3.1 document with webhooks or an AsyncAPI 3 document. docs/versions.md explains the catalogue.`,
  actions: ['pull', 'push', 'diff', 'types'],
  takesFile: true,
  takesJson: true,
  async run(args) {
    // Loaded only here: it brings the validator along.
    const { runCatalogue } = await import('../catalogue/run.ts');
    return runCatalogue(args, catalogue.usage);
  },
};
