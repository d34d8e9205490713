import { callEndpoint } from "#http/client.ts";
import { command, serverFlags } from "#door/command.ts";
import { cancelRun, dispatchWorkflow, listRuns, putRepository, rerunRun } from "#doors/ci/endpoints.ts";
import { fetchOf, ownerAndName, pairsIn, repositoryHere, usage } from "./node-call.ts";

const repositoryFlag = {
  repository: { type: "string", value: "OWNER/NAME", about: "the repository (the one of this folder, by its origin)" },
} as const;

export const ciAdd = command({
  name: "ci add",
  about: "Register a repository with a node: a path or a URL to fetch from, or none to push to the node itself.",
  words: "<owner/name> [path or URL]",
  positionalsMax: 2,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace ci add mill/flour https://git.example.org/mill/flour", "millrace ci add mill/flour"],
  async run({ positionals: [repository, url], values }, world) {
    if (repository === undefined) return usage(world, "ci add mill/flour /srv/git/flour.git");
    const { existsSync } = await import("node:fs");
    const { resolve } = await import("node:path");
    const address = url !== undefined && existsSync(url) ? resolve(url) : url;
    const body = { repository, ...(address !== undefined && { url: address }) };
    const added = await callEndpoint(await fetchOf(values, world), putRepository, { body });
    const where = added.url === undefined ? "kept by the node: push to it" : `fetched from ${added.url}`;
    world.out(values.json ? JSON.stringify(added) : `${added.repository} is ${where}`);
    return 0;
  },
});

export const ciDispatch = command({
  name: "ci dispatch",
  about: "Start a workflow on a node, at a branch, a tag or a commit.",
  words: "<workflow>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...repositoryFlag,
    ref: { type: "string", value: "REF", about: "the branch, tag or commit (the default branch)" },
    input: { type: "strings", value: "NAME=VALUE", about: "an input of workflow_dispatch" },
    key: { type: "string", value: "KEY", about: "the same key never makes a second run" },
    watch: { type: "boolean", about: "show the run until it has ended", short: "w" },
  },
  examples: ["millrace ci dispatch release.yml --input version=1.2.3 --watch"],
  async run({ positionals: [workflow], values }, world) {
    if (workflow === undefined) return usage(world, "ci dispatch release.yml --repository mill/flour");
    const fetch = await fetchOf(values, world);
    const { run, warnings = [] } = await callEndpoint(fetch, dispatchWorkflow, {
      params: ownerAndName(await repositoryHere(values.repository)),
      body: { workflow, inputs: pairsIn(values.input ?? []), ...(values.ref !== undefined && { ref: values.ref }) },
      ...(values.key !== undefined && { idempotencyKey: values.key }),
    });
    for (const warning of warnings) world.note(`warning: ${warning}`);
    if (!values.watch) {
      world.out(values.json ? JSON.stringify({ run, ...(warnings.length > 0 && { warnings }) }) : run);
      return 0;
    }
    const { watchRun } = await import("./watch-run.ts");
    return await watchRun(fetch, run, { json: values.json === true }, world);
  },
});

export const ciList = command({
  name: "ci list",
  about: "List runs, the newest first.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    repository: { type: "string", value: "OWNER/NAME", about: "only runs of this repository" },
    workflow: { type: "string", value: "FILE", about: "only runs of this workflow" },
    branch: { type: "string", value: "NAME", about: "only runs of this branch or tag" },
    event: { type: "string", value: "NAME", about: "only runs of this event" },
    actor: { type: "string", value: "NAME", about: "only runs that this person began" },
    conclusion: { type: "string", value: "NAME", about: "only runs that ended so: success, failure, cancelled" },
    limit: { type: "string", value: "NUMBER", about: "how many at most (20)" },
  },
  examples: ["millrace ci list --repository mill/flour --branch main"],
  async run({ values }, world) {
    const { limit = "20", repository, workflow, branch, event, actor, conclusion } = values;
    const asked = Object.entries({ repository, workflow, branch, event, actor, conclusion });
    const query = {
      limit,
      ...Object.fromEntries(asked.flatMap(([name, of]) => (of === undefined ? [] : [[name, of]]))),
    };
    const { items } = await callEndpoint(await fetchOf(values, world), listRuns, { query });
    for (const one of items) {
      const ref = one.ref.replace(/^refs\/(heads|tags)\//, "");
      const state = one.conclusion ?? one.status;
      const line = `${one.run}  ${state}  ${one.title}  ${one.repository} ${ref} ${one.sha.slice(0, 8)}  ${one.event}`;
      world.out(values.json ? JSON.stringify(one) : line);
    }
    if (items.length === 0 && !values.json) world.note("there are no runs");
    return 0;
  },
});

export const ciCancel = command({
  name: "ci cancel",
  about: "Cancel a run: steps get time to end, and jobs with `if: always()` or `cancelled()` still run.",
  words: "<run>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace ci cancel j0-1"],
  async run({ positionals: [run], values }, world) {
    if (run === undefined) return usage(world, "ci cancel j0-1");
    await callEndpoint(await fetchOf(values, world), cancelRun, { params: { run } });
    if (values.json) world.out(JSON.stringify({ run, cancelled: true }));
    return 0;
  },
});

export const ciRerun = command({
  name: "ci rerun",
  about: "Run again: all jobs of a run, those that failed, or one, each with the jobs that need it.",
  words: "<run>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    failed: { type: "boolean", about: "only jobs that did not succeed" },
    job: { type: "string", value: "ID", about: "only this job" },
    "from-step": {
      type: "string",
      value: "NUMBER",
      about: "the job goes on at this step, as `ci log --step` numbers it",
    },
    script: { type: "string", value: "FILE", about: "what that step runs instead; for operators" },
    watch: { type: "boolean", about: "show the run until it has ended", short: "w" },
  },
  examples: [
    "millrace ci rerun j0-1 --failed --watch",
    "millrace ci rerun j0-1 --job build --from-step 3 --script fixed.sh --watch",
  ],
  async run({ positionals: [run], values }, world) {
    if (run === undefined) return usage(world, "ci rerun j0-1 --failed");
    const fetch = await fetchOf(values, world);
    const { "from-step": step, script } = values;
    const { readFile } = await import("node:fs/promises");
    const from = {
      ...(step !== undefined && { fromStep: Number(step) }),
      ...(script !== undefined && { script: await readFile(script, "utf8") }),
    };
    const again = await callEndpoint(fetch, rerunRun, {
      params: { run },
      body: { failed: values.failed === true, ...(values.job !== undefined && { job: values.job }), ...from },
    });
    if (!values.watch) {
      world.out(values.json ? JSON.stringify(again) : again.run);
      return 0;
    }
    const { watchRun } = await import("./watch-run.ts");
    return await watchRun(fetch, again.run, { json: values.json === true }, world);
  },
});
