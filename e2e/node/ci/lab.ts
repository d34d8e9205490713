/** For tests: a node with the services of the CI door, and jobs that hold claims. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNode, type Running } from "#app/compose/compose.ts";
import { configOf } from "#app/config/config.ts";
import { doors } from "#app/doors.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { must } from "#base/assert.ts";
import { formatTask } from "#base/ids.ts";
import type { Door } from "#door/door.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import type { Sources } from "#sources/sources.ts";
import { openCiServices } from "#doors/ci/services/open.ts";
import type { JobServices } from "#doors/ci/services/job-services.ts";
import type { ServiceLimits } from "#doors/ci/services/limits.ts";
import type { CiServices } from "#doors/ci/services/services.ts";
import { ShellJob } from "#doors/shell/request.ts";
import { planSubmit } from "#doors/shell/plan.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

export type HeldJob = {
  readonly run: string;
  readonly task: string;
  readonly claim: number;
  /** The claim ends with it. */
  cancel(): Promise<void>;
};

export type Lab = AsyncDisposable & {
  readonly node: Running;
  readonly origin: string;
  readonly services: CiServices;
  readonly sources: Sources;
  readonly folder: string;
  /** A job that runs until the lab ends, or until it is cancelled. */
  hold(): Promise<HeldJob>;
  env(job: HeldJob, more?: Partial<Parameters<CiServices["jobServices"]>[0]>): Promise<JobServices>;
};

const hourMs = 3_600_000;

/** Members: ann of the tenant mill, bob of another. */
export const tokenFor = (name: string): string => `${name}-${"0123456789".repeat(4)}`;
const grant = (name: string, tenant: string) => ({
  name,
  tenant,
  roles: ["member"],
  sha256: tokenSha256(tokenFor(name)),
});

export async function openLab(limits: Partial<ServiceLimits> = {}): Promise<Lab> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-services-"));
  let services: CiServices | undefined;
  let sources: Sources | undefined;
  const listed = doors.map((door): Door =>
    door.name === "ci"
      ? {
          ...door,
          async open(ports) {
            sources = ports.sources;
            const opened = (services = await openCiServices(ports, { limits }));
            return { http: (request, identify) => opened.http(request, identify) };
          },
        }
      : door,
  );
  const config = configOf(listed).parse({
    cluster: { shards: 1 },
    journal: { kind: "memory" },
    edge: { listen: ["127.0.0.1:0"], identity: { tokens: [grant("ann", "mill"), grant("bob", "other")] } },
    blobs: { kind: "disk", sizeMax: "1GiB" },
    worker: { slots: 4 },
  });
  const node = await startNode(config, dataFolder(join(folder, "data")), { log: () => {}, doors: listed });
  const origin = `http://${node.edgeAddresses[0]}`;
  if (!services || !sources) throw new Error("the door was not opened");
  const opened = services;
  const held: HeldJob[] = [];
  return {
    node,
    origin,
    services: opened,
    sources,
    folder,
    async hold() {
      const job = await hold(node);
      held.push(job);
      return job;
    },
    env: (job, more = {}) =>
      opened.jobServices({
        tenant: "mill",
        run: job.run,
        task: job.task,
        claim: job.claim,
        runAttempt: 1,
        repository: "octo/demo",
        cacheRefs: ["refs/heads/topic", "refs/heads/main"],
        origin,
        untilMs: Date.now() + hourMs,
        ...more,
      }),
    async [Symbol.asyncDispose]() {
      for (const { run } of held) await node.client.cancel(run, "the lab ends");
      await node.stop();
      clearAway(folder);
    },
  };
}

async function hold({ client }: Running): Promise<HeldJob> {
  const document = ShellJob.parse({ stages: [{ name: "held", sleep: "1h" }] });
  const { jobId } = await client.submit(planSubmit(document, { tenant: "default", unique: randomUUID() }));
  const held = async () => {
    const { view } = await client.job(jobId);
    const task = view.tasks.find(({ claims }) => claims.some(({ started }) => started));
    return task && { task: formatTask(0, task.task), claim: task.claims[0]?.token ?? 0 };
  };
  await until("the job runs", async () => (await held()) !== undefined);
  const found = must(await held(), "a task that runs");
  return {
    run: jobId,
    ...found,
    async cancel() {
      await client.cancel(jobId, "the test says so");
      await until("its claim is over", async () => (await client.task(found.task)).claims.length === 0);
    },
  };
}

/** Runs calls of the official clients in a process of their own, and returns what each came to. */
export async function withClients(
  { env, actionEnv }: JobServices,
  folder: string,
  calls: readonly (readonly [name: string, ...args: readonly unknown[]])[],
): Promise<readonly ClientAnswer[]> {
  const program = join(import.meta.dirname, "clients-program.ts");
  const child = spawn(process.execPath, ["--no-warnings", program, JSON.stringify(calls)], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      RUNNER_TEMP: folder,
      RUNNER_TOOL_CACHE: join(folder, "tools"),
      GITHUB_WORKSPACE: folder,
      GITHUB_REPOSITORY: "octo/demo",
      ...env,
      ...actionEnv,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let errors = "";
  child.stdout.on("data", (part: Buffer) => (out += part.toString()));
  child.stderr.on("data", (part: Buffer) => (errors += part.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  const line = out.split("\n").find((one) => one.startsWith("ANSWERS "));
  if (line === undefined)
    throw new Error(`the clients' process said no answers: ${out.slice(-2_000)} ${errors.slice(-2_000)}`);
  return JSON.parse(line.slice("ANSWERS ".length)) as readonly ClientAnswer[];
}

export type ClientAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: string; readonly name: string };
