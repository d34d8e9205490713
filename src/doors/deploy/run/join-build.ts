/**
 * The build of a release, shared by all that want the same: a job of its own, found by what decides its outcome. The
 * release waits for its end as a stage that is not planned yet, and so holds no worker.
 *
 * BJ1 While a build of a commit runs, every release that wants it waits for that one.
 * BJ2 A build that ended well is used again for as long as all its bytes are in the store.
 * BJ3 A release ends with the build that it joined: it does not start another one when that failed.
 */
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { Plan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Planner } from "#worker/runner.ts";
import { readWhole } from "#doors/deploy/fleet/whole.ts";
import { distinctSegments } from "#doors/deploy/manifest/manifest.ts";
import { buildKey, buildOf, planBuild, planSeal, type Packed, type Release } from "#doors/deploy/plan.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";

export const builtSpace = "deploy/built";

export type JoinPorts = {
  readonly client: Pick<WorkClient, "submit" | "signal" | "job">;
  readonly index: ActionIndex;
  readonly store: Store;
};

/** The release that started a build gets a notice of its end; others look at it this often. */
const lookEveryMs = 5_000;
const wait: Plan = { kind: "wait", forMs: lookEveryMs, signals: ["ended:build"] };

export const joinBuild =
  ({ client, index, store }: JoinPorts): Planner =>
  async ({ spec, signals }: PlanInputs, { task: { tenant, jobId } }): Promise<Plan> => {
    const release = specWithService<Release>(spec);
    const { blobs } = store.forTenant(tenant);
    const built = await index.get({ tenant, space: builtSpace, name: buildKey(buildOf(release)) });
    if (built && (await blobs.missing([built.digest])).length === 0) {
      const packed = JSON.parse(await readWhole(blobs, built.digest)) as Packed;
      // BJ2
      if ((await blobs.missing(distinctSegments(packed))).length === 0) return planSeal(release, built.digest);
    }
    const joined = signals.find(({ name }) => name === "joined")?.payload;
    if (joined === undefined) {
      const whenEnded = [{ jobId, stage: "build", name: "build" }];
      const build = await client.submit({ ...planBuild(release, tenant), whenEnded });
      await client.signal(jobId, "build", { name: "joined", payload: build.jobId, id: "joined" });
      return wait;
    }
    // BJ3
    return afterBuild(joined, await phaseOf(client, joined));
  };

type Seen = { readonly phase: string; readonly reason: string };

/** Pure: what a release does when it finds its build like this, and no packed result. */
export function afterBuild(job: string, { phase, reason }: Seen): Plan {
  const why = reason === "" ? "" : `: ${reason}`;
  if (phase === "FAILED" || phase === "CANCELLED")
    return { kind: "fail", reason: `the build, ${job}, has ended ${phase}${why}` };
  if (phase === "SUCCEEDED")
    return { kind: "fail", reason: `what the build, ${job}, made is no longer in the store: release again` };
  if (phase === "UNKNOWN") return { kind: "fail", reason: `the build, ${job}, is not known any more: release again` };
  return wait;
}

async function phaseOf(client: JoinPorts["client"], job: string): Promise<Seen> {
  try {
    const { view } = await client.job(job, { tasksMax: 1 });
    return { phase: view.phase, reason: view.reason };
  } catch (error) {
    if (!isRejected(error, "job-unknown")) throw error;
    return { phase: "UNKNOWN", reason: "" };
  }
}
