/** Pools of machines that are made while work waits for them, under /v1/pools. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

const Name = z.object({ pool: z.string().min(1).max(60) });

const Counts = {
  max: z.int().describe("Its ceiling."),
  desired: z.int().describe("How many machines it is to have: what runs, what waits, and spares."),
  waiting: z.int().describe("Tasks that are ready and that it can run."),
  running: z.int().describe("Tasks that its machines run."),
  starting: z.int().describe("Machines that have not asked for work yet."),
  idle: z.int(),
  busy: z.int(),
  leaving: z.int(),
  oldestWaitSeconds: z.number().describe("How long the first of the waiting tasks has been ready."),
};

const Pool = z.object({
  pool: z.string(),
  kind: z.enum(["kubernetes", "commands", "external"]),
  tenant: z.string().optional().describe("Whose work it runs; absent: every tenant's."),
  spot: z.boolean().describe("Its machines may go at any time."),
  templates: z.array(z.object({ name: z.string(), runsOn: z.array(z.string()), warm: z.int(), desired: z.int() })),
  ...Counts,
  seenAt: z.string().optional().describe("When that was so; absent: no node has looked yet."),
  node: z.string().optional().describe("Which node keeps it."),
});

const Machine = z.object({
  name: z.string(),
  template: z.string(),
  phase: z.enum(["starting", "up", "ended", "leaving"]),
  work: z.enum(["none", "idle", "busy"]),
  ageSeconds: z.number(),
  task: z.string().optional().describe("What it runs, for those who may see it."),
  problem: z
    .object({
      reason: z.string().describe("unschedulable, image-pull, configuration, out-of-memory, evicted, preempted, ..."),
      message: z.string(),
    })
    .optional(),
  events: z.array(z.string()).optional().describe("What Kubernetes says of it, the newest last."),
});

export const listPools = endpoint({
  method: "GET",
  path: "/v1/pools",
  action: "pool.read",
  about: "Lists pools: those that all tenants share, and the tenant's own.",
  answer: json(z.object({ items: z.array(Pool) })),
});

export const showPool = endpoint({
  method: "GET",
  path: "/v1/pools/{pool}",
  action: "pool.read",
  about: "Shows a pool with its machines, those with problems first.",
  params: Name,
  answer: json(Pool.extend({ machines: z.array(Machine) })),
});

export const desiredOfPool = endpoint({
  method: "GET",
  path: "/v1/pools/{pool}/desired",
  action: "pool.read",
  about: "Says how many machines a pool is to have now, for others' autoscalers.",
  params: Name,
  answer: json(z.object({ pool: z.string(), ...Counts })),
});

export const poolEndpoints = [listPools, showPool, desiredOfPool] as const;
