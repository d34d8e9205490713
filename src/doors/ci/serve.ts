/** The CI door on a node. */
import { arch } from "node:os";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { ciCalls } from "./calls.ts";
import type { CiSettings } from "./config.ts";
import { spoolIn } from "#blobs/spool.ts";
import { sweepContainers } from "./containers/guard.ts";
import { containersLabel, findContainers, labelledFor } from "./containers/host.ts";
import { ciAnswers } from "./job/answers.ts";
import { linkedBox, plainBox, sandboxBox } from "./job/box.ts";
import { cellRunner } from "./job/cell-runner.ts";
import { CommitPacks } from "./job/commit-packs.ts";
import { jobKnown, type KnownPorts } from "./job/known.ts";
import { CompileCache } from "./job/compile-cache.ts";
import { CiMetrics } from "./metrics/ci-metrics.ts";
import { door, kinds, planLabel, sandboxLabel, taskLabel } from "./plan.ts";
import { ciPrinted } from "./printed.ts";
import { groupLabel } from "./queues.ts";
import { openCiServices } from "./services/open.ts";
import { SecretBoxes } from "./secrets/boxes.ts";
import { secretRoutes } from "./secrets/routes.ts";
import { Deployments } from "./environments/deployments.ts";
import { Environments } from "./environments/environments.ts";
import { environmentRoutes } from "./environments/routes.ts";
import { gate } from "./environments/waiting.ts";
import { serviceRoutes } from "./services/routes.ts";
import { exportRoutes } from "./export/routes.ts";
import { ciRoutes, shownRun } from "./routes.ts";
import { listRoutes } from "./lists/routes.ts";
import { openIntake } from "./intake/open.ts";
import { intakeRoutes } from "./intake/routes.ts";
import { decisionsIn } from "./runs/decisions.ts";
import { takeReports } from "./tests/artifact-reports.ts";
import { TestReports } from "./tests/reports.ts";
import { testRoutes } from "./tests/routes.ts";
import { ciPlanners, readCellTask } from "./runs/planners.ts";

const dayMs = 24 * 3_600_000;

export async function openCi(ports: DoorPorts, settings: CiSettings): Promise<OpenDoor> {
  const { node, stored, clock, client, live, place, sources } = ports;
  const { records, keeps } = ports;
  const reports = new TestReports({ records, keeps, store: stored.store, client, clock });
  const report = (error: unknown): void => ports.warn("ci-service-failed", { error });
  const retentionMs = settings.retentionDays * dayMs;
  const services = await openCiServices(ports, {
    finished: async (job, artifact) => await takeReports({ reports, store: stored.store, report }, job, artifact),
    limits: { retentionMsDefault: retentionMs, retentionMsMax: retentionMs },
  });
  const printed = ciPrinted(stored.store);
  const isBoxed = place !== undefined && isolated(settings, place.boxed?.sandbox.about.kind === "bubblewrap");
  const labels = [
    ...new Set([...settings.labels, arch()].map((label) => `runner=${label.toLowerCase()}`)),
    ...settings.groups.map((group) => groupLabel(group)),
  ];
  const containers =
    place && settings.isolation !== "sandbox"
      ? await findContainers(settings.containers, process.env, ports.log)
      : undefined;
  const here = { name: node, dataFolder: ports.dataFolder };
  if (containers) sweepContainers(containers, here);
  const metrics = new CiMetrics();
  const compiled = new CompileCache();
  const intake = openIntake(ports, settings, (lagMs) => metrics.scheduled(lagMs));
  const environments = new Environments(ports.records);
  const deployments = new Deployments(ports.records);
  const known: KnownPorts = {
    client,
    sources,
    services,
    vault: ports.vault,
    variables: intake.variables,
    commits: new CommitPacks(join(ports.spool.folder, "ci-commits")),
    actions: { folder: settings.actions, server: settings.actionServer },
    keptKey: () => ports.keyOf("ci.kept"),
    onRunnerLoss: settings.onRunnerLoss,
  };
  const decisions = decisionsIn(ports);
  const shown = async (run: string, tenant: string) =>
    await shownRun({ client, start: intake.triggers, decisions }, run, tenant);
  return {
    labels: [
      taskLabel,
      planLabel,
      ...(isBoxed ? [sandboxLabel] : []),
      ...(containers ? [containersLabel] : []),
      ...labels,
    ],
    printed: { [door]: printed },
    observer: metrics,
    calls: {
      ...sources.calls,
      ...ciCalls({ sources, start: intake.triggers, artifacts: services.artifacts, store: stored.store }),
    },
    metrics: (registry) => metrics.bind(registry),
    close: async () => {
      compiled[Symbol.dispose]();
      await intake[Symbol.asyncDispose](); // a node that does not come up closes its doors, and never leaves
    },
    http: (request, identify) => intake.takeHook(request) ?? services.http(request, identify),
    routes: [
      ...ciRoutes({
        client,
        clock,
        live,
        printed,
        sources,
        start: intake.triggers,
        decisions,
        pools: ports.pools,
      }),
      ...listRoutes({ client, clock, shown }),
      ...intakeRoutes(intake.routes),
      ...serviceRoutes(services, stored.store),
      ...testRoutes({ reports, client, sources }),
      ...exportRoutes({ client, artifacts: services.artifacts, reports, shown }),
      ...environmentRoutes({ client, clock, blobs: stored.blobs, sources, environments, deployments }),
      ...secretRoutes({ vault: ports.vault, boxes: new SecretBoxes(() => ports.keyOf("ci.boxes"), clock), sources }),
    ],
    answers: ciAnswers({
      ...known,
      client,
      clock,
      stored,
      spool: spoolIn(ports.spool.folder, ports.spool.bytesMax),
      folder: ports.spool.folder,
    }),
    ...(place && {
      runners: {
        [kinds.job]: cellRunner({
          node,
          place,
          compiled,
          known: async ({ task, blobs }) =>
            await jobKnown(
              await readCellTask(task.spec, blobs),
              { task, blobs, clock, origin: settings.url ?? ports.origin() },
              known,
            ),
          containers: (task) => containers && labelledFor(containers, here, task),
          box: async (context) => {
            const { hasContainers = false } = await readCellTask(context.task.spec, context.blobs);
            if (hasContainers) return await plainBox(place, context);
            const boxed = isBoxed ? place.boxed : undefined;
            return boxed ? await sandboxBox(boxed, context) : await linkedBox(place, context);
          },
        }),
      },
      planners: ciPlanners({
        client,
        gate: (stage) => gate({ client, clock, environments, deployments }, stage),
        ended: intake.runEnded,
        leaseMs: settings.runnerLease,
        ...(intake.triggers.onRunnerLoss && { onRunnerLoss: intake.triggers.onRunnerLoss }),
      }),
    }),
  };
}

function isolated({ isolation }: CiSettings, hasSandbox: boolean): boolean {
  if (isolation === "sandbox" && !hasSandbox)
    throw new Fault("invalid", "open the CI door", {
      why: "ci.isolation is sandbox, and bubblewrap cannot be used here",
      try: "install bubblewrap, or set ci.isolation to auto",
    });
  return isolation !== "none" && hasSandbox;
}
