import { z } from "zod";
import { Duration } from "#base/config-words.ts";
import { ContainerConfig } from "./containers/host.ts";
import { forkRules } from "./intake/strangers.ts";
import { RequiredWorkflow } from "#doors/ci/runs/trigger/required-workflow.ts";
import { Queue } from "./queues.ts";

const Label = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)
  .describe("a label that runs-on may ask for");

export const CiConfig = z.strictObject({
  labels: z
    .array(Label)
    .max(50)
    .default(["ubuntu-latest", "self-hosted", "linux"])
    .describe("what jobs may ask for with runs-on to run on this node, in any case; the processor's name is added"),
  groups: z
    .array(Label)
    .max(50)
    .default([])
    .describe("groups of runners that this node belongs to, for `runs-on: {group: ...}`"),
  queues: z
    .array(Queue)
    .max(200)
    .default([])
    .describe(
      "which runs go to which workers only: by tenant and repository, to those with all of these labels; the same on " +
        "all nodes",
    ),
  isolation: z
    .enum(["auto", "sandbox", "none"])
    .default("auto")
    .describe(
      "what jobs run in: sandbox needs bubblewrap; none runs them as the node's own user, and takes jobs that " +
        "operators started only; auto takes the sandbox where there is one",
    ),
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("how jobs on this node reach a node, such as http://127.0.0.1:8980; left out: this node's own address"),
  onRunnerLoss: z
    .enum(["resume", "restart", "fail"])
    .default("resume")
    .describe(
      "what becomes of a job whose runner is lost, where neither the job nor its pool says it: resume goes on after " +
        "its last finished step, on any machine; restart runs all of it again; fail ends it; the same on all nodes",
    ),
  runnerLease: Duration({ min: "2s", max: "10m" })
    .prefault("30s")
    .describe(
      "how long a runner may be silent before its jobs go on at another; a job's own processes end by then; the same " +
        "on all nodes",
    ),
  containers: ContainerConfig.describe(
    "containers of jobs (container, services, actions that are images) on this node",
  ),
  actions: z
    .string()
    .min(1)
    .optional()
    .describe("a folder with actions of others, as owner/repo, owner/repo@ref or owner/repo/ref"),
  catchUp: z
    .enum(["skip", "once", "all"])
    .default("once")
    .describe(
      "what becomes of instants of `on: schedule` at which no node was there: none, one run for all of them, or " +
        "one for each, up to 100",
    ),
  forks: z
    .enum(forkRules)
    .default("first-time")
    .describe(
      "which runs of pull requests from forks wait for an approval: of people who have not contributed before " +
        "(first-time), all, or none",
    ),
  retentionDays: z
    .int()
    .min(1)
    .max(400)
    .default(90)
    .describe("how long artifacts stay that do not say `retention-days`, and the longest that those can ask for"),
  required: z
    .array(RequiredWorkflow)
    .max(50)
    .default([])
    .describe("workflows that run for all repositories of an owner, whatever is in those; the same on all nodes"),
  actionServer: z
    .url({ protocol: /^(https?|file)$/ })
    .optional()
    .describe(
      "a git server that has actions which are neither in that folder nor in a registered repository, such as " +
        "https://github.com: owner/repo is fetched from below it, as sources.* allows",
    ),
});
export type CiSettings = z.output<typeof CiConfig>;
