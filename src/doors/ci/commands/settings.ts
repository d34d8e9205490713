/** What a repository's workflows run on and may know: workflows, webhooks, variables. */
import { callEndpoint } from "#http/client.ts";
import { command, serverFlags } from "#door/command.ts";
import {
  disableWorkflow,
  enableWorkflow,
  listDeliveries,
  listVariables,
  listWorkflows,
  makeHook,
  putVariable,
  removeHook,
  removeVariable,
} from "#doors/ci/intake/endpoints.ts";
import type { Scope } from "#doors/ci/secrets/scope.ts";
import { fetchOf, ownerAndName, repositoryHere, usage } from "./node-call.ts";

const repositoryFlag = {
  repository: { type: "string", value: "OWNER/NAME", about: "the repository (the one of this folder, by its origin)" },
} as const;

export const ciWorkflows = command({
  name: "ci workflows",
  about: "List the workflows of a repository with their schedules, or enable or disable one.",
  words: "[enable|disable <file>]",
  positionalsMax: 2,
  takesRest: false,
  flags: { ...serverFlags, ...repositoryFlag },
  examples: ["millrace ci workflows --repository mill/flour", "millrace ci workflows disable nightly.yml"],
  async run({ positionals: [verb, workflow], values }, world) {
    const params = ownerAndName(await repositoryHere(values.repository));
    const fetch = await fetchOf(values, world);
    if (verb !== undefined) {
      const change = verb === "enable" ? enableWorkflow : verb === "disable" ? disableWorkflow : undefined;
      if (!change || workflow === undefined) return usage(world, "ci workflows disable nightly.yml");
      await callEndpoint(fetch, change, { params: { ...params, workflow } });
      return 0;
    }
    const { workflows } = await callEndpoint(fetch, listWorkflows, { params });
    for (const one of workflows) {
      if (values.json) {
        world.out(JSON.stringify(one));
        continue;
      }
      const problem = one.problem === undefined ? "" : `  ${one.problem}`;
      world.out(`${one.path}  ${one.state}  ${one.name}  on ${one.events.join(", ")}${problem}`);
      for (const { cron, zone, next = "never", trouble } of one.schedules)
        world.out(`  ${cron} (${zone})  next ${next}${trouble === undefined ? "" : `  ${trouble}`}`);
    }
    if (workflows.length === 0 && !values.json) world.note("the default branch has no workflows");
    return 0;
  },
});

export const ciHook = command({
  name: "ci hook",
  about: "Make the address and the secret for webhooks of a forge, end it, or list what came.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...repositoryFlag,
    remove: { type: "boolean", about: "take no more webhooks" },
    deliveries: { type: "boolean", about: "list the last webhooks, and what came of them" },
  },
  examples: ["millrace ci hook --repository mill/flour", "millrace ci hook --deliveries"],
  async run({ values }, world) {
    const params = ownerAndName(await repositoryHere(values.repository));
    const fetch = await fetchOf(values, world);
    if (values.remove) {
      await callEndpoint(fetch, removeHook, { params });
      return 0;
    }
    if (values.deliveries) {
      const { deliveries } = await callEndpoint(fetch, listDeliveries, { params });
      for (const one of deliveries) {
        const end =
          one.runs.length > 0 ? one.runs.join(" ") : (one.why ?? (one.handled ? "nothing to start" : "waits"));
        world.out(values.json ? JSON.stringify(one) : `${one.at}  ${one.forge} ${one.event}  ${one.id}  ${end}`);
      }
      return 0;
    }
    const hook = await callEndpoint(fetch, makeHook, { params });
    if (values.json) world.out(JSON.stringify(hook));
    else world.out(`address: <the node's address>${hook.path}\nsecret:  ${hook.secret}\ncontent: application/json`);
    return 0;
  },
});

/** Where a secret or a variable counts. */
export const scopeFlags = {
  owner: { type: "string", value: "OWNER", about: "of all repositories of this owner" },
  repository: { type: "string", value: "OWNER/NAME", about: "of this repository only" },
  environment: { type: "string", value: "NAME", about: "of this environment of the repository only" },
} as const;

export function scopeIn({ owner, repository, environment }: Scope): Scope {
  return {
    ...(owner !== undefined && { owner }),
    ...(repository !== undefined && { repository }),
    ...(environment !== undefined && { environment }),
  };
}

export const ciVar = command({
  name: "ci var",
  about: "Set, list or delete variables (`vars`): of all repositories, or of an owner, a repository or an environment.",
  words: "<set NAME=VALUE|list|delete NAME>",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...scopeFlags,
  },
  examples: ["millrace ci var set REGION=eu --repository mill/flour", "millrace ci var list"],
  async run({ positionals: [verb, word = ""], values }, world) {
    const fetch = await fetchOf(values, world);
    const of = scopeIn(values);
    if (verb === "list") {
      const { variables } = await callEndpoint(fetch, listVariables, { query: of });
      for (const one of variables) {
        const place = one.repository ?? one.owner;
        const where = place === undefined ? "" : `  (${[place, one.environment].filter(Boolean).join(", ")})`;
        world.out(values.json ? JSON.stringify(one) : `${one.name}=${one.value}${where}`);
      }
      return 0;
    }
    const equals = word.indexOf("=");
    if (verb === "set" && equals > 0) {
      const body = { value: word.slice(equals + 1), ...of };
      await callEndpoint(fetch, putVariable, { params: { variable: word.slice(0, equals) }, body });
      return 0;
    }
    if (verb !== "delete" || word === "") return usage(world, "ci var set REGION=eu");
    await callEndpoint(fetch, removeVariable, { params: { variable: word }, query: of });
    return 0;
  },
});
