/** Environments: their rules, what waits for a person, and what was deployed. */
import { callEndpoint } from "#http/client.ts";
import { command, serverFlags, type World } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import {
  listApprovals,
  listDeployments,
  listEnvironments,
  putEnvironment,
  removeEnvironment,
  reviewRun,
} from "#doors/ci/environments/endpoints.ts";
import { fetchOf, ownerAndName, repositoryHere, usage } from "./node-call.ts";

const repositoryFlag = {
  repository: { type: "string", value: "OWNER/NAME", about: "the repository (the one of this folder, by its origin)" },
} as const;

export const ciEnvironment = command({
  name: "ci environment",
  about: "Set, list or delete the rules of environments: who reviews deployments, how long they wait, what may deploy.",
  words: "<set NAME|list|delete NAME>",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...repositoryFlag,
    reviewers: { type: "string", value: "NAMES", about: "who may approve, separated by commas" },
    approvals: { type: "string", value: "N", about: "how many must approve (1 where reviewers are named)" },
    wait: { type: "string", value: "MINUTES", about: "how long jobs wait at least" },
    branches: { type: "string", value: "PATTERNS", about: "which branches and tags may deploy, separated by commas" },
    "no-self-review": { type: "boolean", about: "who started a run cannot approve it" },
    exclusive: { type: "boolean", about: "one job at a time" },
  },
  examples: ["millrace ci environment set production --reviewers ada,bob --approvals 2 --branches main"],
  async run({ positionals: [verb, environment], values }, world) {
    const params = ownerAndName(await repositoryHere(values.repository));
    const fetch = await fetchOf(values, world);
    if (verb === "list") {
      const { environments } = await callEndpoint(fetch, listEnvironments, { params });
      for (const one of environments)
        world.out(values.json ? JSON.stringify(one) : `${one.environment}  ${inWords(one.rules)}`);
      if (environments.length === 0 && !values.json) world.note("no environment has rules: everything is let in");
      return 0;
    }
    if (environment === undefined) return usage(world, "ci environment set production --reviewers ada");
    if (verb === "delete") {
      await callEndpoint(fetch, removeEnvironment, { params: { ...params, environment } });
      return 0;
    }
    if (verb !== "set") return usage(world, "ci environment set production --reviewers ada");
    const body = {
      reviewers: listed(values.reviewers),
      ...(values.approvals !== undefined && { approvals: Number(values.approvals) }),
      waitMinutes: Number(values.wait ?? 0),
      branches: listed(values.branches),
      preventSelfReview: values["no-self-review"] ?? false,
      exclusive: values.exclusive ?? false,
    };
    await callEndpoint(fetch, putEnvironment, { params: { ...params, environment }, body });
    return 0;
  },
});

const listed = (text = ""): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

function inWords(rules: {
  readonly reviewers: readonly string[];
  readonly approvals?: number | undefined;
  readonly waitMinutes: number;
  readonly branches: readonly string[];
  readonly exclusive: boolean;
}): string {
  const { reviewers, approvals = Math.min(1, reviewers.length), waitMinutes, branches, exclusive } = rules;
  const parts = [
    approvals > 0 ? `${approvals} of ${reviewers.length > 0 ? reviewers.join(", ") : "all who may approve"}` : "",
    waitMinutes > 0 ? `waits ${waitMinutes} min` : "",
    branches.length > 0 ? `from ${branches.join(", ")}` : "",
    exclusive ? "one job at a time" : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}

const reviewFlags = {
  ...serverFlags,
  environment: { type: "string", value: "NAMES", about: "these environments only, separated by commas" },
  comment: { type: "string", value: "TEXT", about: "why; it is shown with the run" },
} as const;

export const ciApprove = command({
  name: "ci approve",
  about: "Approve what a run waits for, or list it: an approval counts once for each person.",
  words: "<run>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...reviewFlags, list: { type: "boolean", about: "only list what it waits for" } },
  examples: ["millrace ci approve j0-1 --environment production", "millrace ci approve j0-1 --list"],
  async run({ positionals: [run], values }, world) {
    if (run === undefined) return usage(world, "ci approve j0-1");
    const fetch = await fetchOf(values, world);
    if (!values.list) return await reviewed(fetch, { run, state: "approved", ...values }, world);
    const { waiting } = await callEndpoint(fetch, listApprovals, { params: { run } });
    for (const one of waiting) {
      const until = one.waitsUntil === undefined ? "" : `, not before ${one.waitsUntil}`;
      const who = one.reviewers.length === 0 ? "" : ` of ${one.reviewers.join(", ")}`;
      const has = `${one.approvedBy.length} of ${one.approvals} approvals${who}${until}`;
      world.out(values.json ? JSON.stringify(one) : `${one.environment || "the run"}  ${one.jobs.join(", ")}  ${has}`);
    }
    if (waiting.length === 0 && !values.json) world.note(`${run} waits for nobody`);
    return 0;
  },
});

export const ciReject = command({
  name: "ci reject",
  about: "Reject what a run waits for: the jobs that wait fail.",
  words: "<run>",
  positionalsMax: 1,
  takesRest: false,
  flags: reviewFlags,
  examples: ["millrace ci reject j0-1 --comment 'not on a Friday'"],
  async run({ positionals: [run], values }, world) {
    if (run === undefined) return usage(world, "ci reject j0-1");
    return await reviewed(await fetchOf(values, world), { run, state: "rejected", ...values }, world);
  },
});

async function reviewed(
  fetch: Awaited<ReturnType<typeof fetchOf>>,
  said: {
    readonly run: string;
    readonly state: "approved" | "rejected";
    readonly environment?: string | undefined;
    readonly comment?: string | undefined;
    readonly json?: boolean | undefined;
  },
  world: World,
): Promise<0> {
  const { run, state, environment, comment, json } = said;
  const body = {
    state,
    ...(environment !== undefined && { environments: listed(environment) }),
    ...(comment !== undefined && { comment }),
  };
  const answer = await callEndpoint(fetch, reviewRun, { params: { run }, body });
  if (json) world.out(JSON.stringify(answer));
  else for (const one of answer.reviewed) world.out(`${one || "the run"}: ${state}`);
  return 0;
}

export const ciDeployments = command({
  name: "ci deployments",
  about: "List what was deployed to the environments of a repository, the newest first.",
  words: "[environment]",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, ...repositoryFlag },
  examples: ["millrace ci deployments production --repository mill/flour"],
  async run({ positionals: [environment], values }, world) {
    const params = ownerAndName(await repositoryHere(values.repository));
    const query = environment === undefined ? {} : { environment };
    const { deployments } = await callEndpoint(await fetchOf(values, world), listDeployments, { params, query });
    if (values.json) for (const one of deployments) world.out(JSON.stringify(one));
    else {
      const rows = deployments.map((one) => [
        one.environment,
        one.state,
        one.run,
        one.job,
        one.sha.slice(0, 8),
        one.at,
        one.url ?? "",
      ]);
      for (const line of tableLines(["environment", "state", "run", "job", "commit", "at", "url"], rows))
        world.out(line);
    }
    return 0;
  },
});
