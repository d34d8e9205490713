/** Actions and builds on a worker: what runs them, where this node has a sandbox for it. */
import type { Boxed, DoorPorts } from "#door/ports.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { Planners, Resume, Runners } from "#worker/runner.ts";
import type { FoundRun } from "#worker/sandbox/sandbox.ts";
import { buildPlanners } from "#doors/build/builds/plan-stage.ts";
import { stepRunners } from "#doors/build/builds/run-step.ts";
import { ActionCacheService } from "#doors/build/cache/action-cache.ts";
import type { TenantTrees } from "#doors/build/cache/tenant-trees.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { ExecutionSettings } from "#doors/build/execute/execution-settings.ts";
import { actionKind } from "#doors/build/plan.ts";
import { actionRunner } from "#doors/build/run.ts";
import { Resumable } from "#doors/build/run/resume.ts";
import { sharedRunner, type SharingPorts } from "#doors/build/run/shared.ts";
import { buildSettingsDefault } from "#doors/build/settings.ts";
import type { Seen } from "#doors/build/why/seen.ts";

export type WorkParts = {
  readonly trees: TenantTrees;
  readonly trust: TrustRules;
  /** Remembers what missed, the same as for calls. */
  readonly seen: Seen;
  /** Where nodes say which actions they run. */
  readonly deskFor: SharingPorts["deskFor"];
  readonly settings: ExecutionSettings;
};

export type Work = {
  readonly runners: Runners;
  readonly planners: Planners;
  readonly resumes: readonly Resume[];
  readonly found: readonly FoundRun[];
};

/** Single actions, and those of builds, which the worker that takes them looks for in the cache. */
export function openWork(ports: DoorPorts, boxed: Boxed, { trees, trust, seen, deskFor, settings }: WorkParts): Work {
  const { node: worker, clock, stored, watch, log } = ports;
  const { store } = stored.counted("worker");
  const resumable = new Resumable(boxed.sandbox);
  const acting = { ...boxed, store, trees, worker, resumable, streams: stored.streams, watch };
  const isUnderWay = (task: Granted): boolean => resumable.knows(task);
  const run = sharedRunner(actionRunner(acting), { clock, deskFor, isUnderWay });
  const report = (doing: string, error: unknown): void => log(`${doing}: ${String(error)}`);
  const cache = { store, index: stored.index, trust, clock, seen, report, settings: buildSettingsDefault };
  const results = new ActionCacheService(cache);
  return {
    runners: { [actionKind]: run, ...stepRunners({ store, results, run, seen }) },
    planners: buildPlanners({ store, settings }),
    resumes: resumable.resumes,
    found: resumable.runs,
  };
}
