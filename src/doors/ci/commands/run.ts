import { command } from "#door/command.ts";

export const ciRun = command({
  name: "ci run",
  about: "Run a workflow of this repository here, without a server or containers.",
  words: "[workflow]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    job: { type: "strings", value: "ID", about: "only this job and what it needs; may be given several times" },
    event: {
      type: "string",
      value: "NAME",
      about: "the event that starts it (push, or the first that the workflow has)",
    },
    payload: { type: "string", value: "FILE", about: "the event's payload, a JSON file" },
    input: { type: "strings", value: "NAME=VALUE", about: "an input of workflow_dispatch" },
    matrix: { type: "strings", value: "KEY:VALUE", about: "only cells with this value" },
    "secret-file": {
      type: "string",
      value: "FILE",
      about: "secrets, NAME=value on each line; masked in everything shown",
    },
    "var-file": { type: "string", value: "FILE", about: "variables for the vars context, NAME=value on each line" },
    actions: {
      type: "string",
      value: "FOLDER",
      about: "where actions of others are, as owner/repo ($MILLRACE_ACTIONS)",
    },
    parallel: { type: "string", value: "NUMBER", about: "how many jobs at once (as many as there are processors)" },
    "in-place": { type: "boolean", about: "work in the repository's folder instead of a copy of it" },
    list: { type: "boolean", about: "say which jobs would run, and run nothing" },
    quiet: { type: "boolean", about: "show how steps end, not what they print" },
    json: { type: "boolean", about: "one JSON object per line" },
  },
  examples: [
    "millrace ci run",
    "millrace ci run test.yml --job build --matrix node:20",
    "millrace ci run release --event workflow_dispatch --input version=1.2.3 --secret-file .secrets",
  ],
  async run({ positionals: [workflow], values }, world) {
    const { runWorkflows } = await import("#doors/ci/local/command.ts");
    return await runWorkflows({ ...values, ...(workflow !== undefined && { workflow }) }, world, process.cwd());
  },
});
