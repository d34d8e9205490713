/** A whole door that is not in the list: tests add it, and nothing else, to a node and to the command line. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { command, serverFlags } from "#door/command.ts";
import { defineDoor, type Metrics, type OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { endpoint, json, jsonBody } from "#http/endpoint.ts";
import { route } from "#http/route.ts";
import type { TaskSet } from "#kernel/model/model.ts";
import type { Order } from "#shard/client/client.ts";

const door = "tea";
const kinds = { brew: "tea.brew", choose: "tea.choose" } as const;
const labels = { task: "door=tea", plan: "plan=tea/1" } as const;

const TeaConfig = z.strictObject({
  cupsMax: z.int().min(1).max(12).default(2).describe("Cups of one pot."),
});
type TeaConfig = z.output<typeof TeaConfig>;

export const brewTea = endpoint({
  method: "POST",
  path: "/v1/tea",
  action: "work.submit",
  about: "Brews a pot of tea.",
  body: jsonBody(z.strictObject({ leaf: z.string().min(1).max(50) })),
  answer: json(z.object({ job: z.string(), cupsMax: z.int() })),
});

const teaBrew = command({
  name: "tea brew",
  about: "Brew a pot of tea.",
  words: "<leaf>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace tea brew oolong"],
  async run({ positionals: [leaf = ""], values }, world) {
    const server = await world.http(values);
    const headers = { "content-type": "application/json" };
    const asked = { method: "POST", body: JSON.stringify({ leaf }), headers };
    const { job } = (await (await server.ask("/v1/tea", "brew tea", asked)).json()) as { readonly job: string };
    world.out(job);
    return 0;
  },
});

const order = (tenant: string, leaf: string): Order => ({
  shardKey: randomUUID(),
  tenant,
  door,
  name: `a pot of ${leaf}`,
  payloadHash: leaf,
  priority: 0,
  spec: leaf,
  deadlineMs: 60_000,
  stages: [
    {
      name: "pot",
      needs: [],
      after: "success",
      failFast: true,
      mayFail: false,
      parallelMax: 0,
      plan: { kind: kinds.choose, requires: [labels.plan], leaseMs: 10_000, attemptsMax: 3, deadlineMs: 60_000 },
    },
  ],
});

const cups = (leaf: string, count: number): TaskSet => ({
  template: {
    kind: kinds.brew,
    requires: [labels.task],
    leaseMs: 10_000,
    attemptsMax: 3,
    retryOn: "infrastructure",
    backoffMs: 100,
    backoffMsMax: 1_000,
    queueMs: 60_000,
    attemptMs: 60_000,
    effects: "pure",
    speculate: false,
    graceMs: 0,
  },
  tasks: Array.from({ length: count }, (_, i) => ({ key: `cup ${i + 1}`, spec: leaf })),
});

async function open({ client, place }: DoorPorts, { cupsMax }: TeaConfig): Promise<OpenDoor> {
  let brewed = (): void => {};
  return {
    labels: Object.values(labels),
    ...(place && {
      runners: {
        [kinds.brew]: async ({ task }) => {
          brewed();
          return { kind: "done", payload: `a cup of ${task.spec}` };
        },
      },
      planners: { [kinds.choose]: ({ spec }) => ({ kind: "tasks", set: cups(spec, cupsMax) }) },
    }),
    routes: [
      route(brewTea, async ({ body: { leaf }, tenant }) => {
        const { jobId: job } = await client.submit(order(tenant, leaf));
        return { body: { job, cupsMax } };
      }),
    ],
    metrics(metrics: Metrics) {
      const cupsBrewed = metrics.counter({ name: "millrace_tea_cups_total", help: "Cups that were brewed." }).with();
      brewed = () => cupsBrewed.add();
    },
  };
}

/** `module` draws its page of the console. */
export const teaDoor = (module: string) =>
  defineDoor({
    name: "tea",
    about: "Pots of tea.",
    section: { about: "How tea is made.", schema: TeaConfig },
    kinds: [
      {
        door,
        nodeLabels: Object.values(labels),
        job: ({ name }) => (name === "eve" ? "no tea for eve" : undefined),
        kinds: { [kinds.brew]: () => undefined, [kinds.choose]: () => undefined },
        signal: () => "a pot takes no signals",
      },
    ],
    commands: [teaBrew],
    endpoints: [brewTea],
    shows: {
      show: (_jobId, { tasks }) => [`${tasks.filter(({ planning }) => !planning).length} cups are on the table`],
      why: () => ["it has to draw for three minutes"],
      result: (payload) => payload,
    },
    pages: [{ path: "tea", title: "Tea", module }],
    open,
  });
