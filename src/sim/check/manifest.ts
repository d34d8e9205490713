/** The manifest of a stage's results: complete, pinned, of one generation, and there when it is needed (ADR 0071). */
import type { EventOf } from "#kernel/model/event.ts";
import { readPage, readRoot } from "#shard/manifest/format.ts";
import type { Checker, Court } from "./court.ts";
import type { ModelStage, ShardModel } from "#sim/model/model.ts";

export const manifestsAreWhole: Checker = {
  invariant: "manifest",
  promise: "a stage with an array completes with a manifest of all its results, and only then do others use them",
  event(court, { model }, event) {
    switch (event.kind) {
      case "manifest-due": {
        const stage = model.stage(event.job, event.stage);
        const open = stage?.tasks.find(({ standing }) => standing !== "over");
        if (open) return `shard ${model.shard}: a manifest is due while task ${open.no} is ${open.standing}`;
        return stage?.manifestDue === undefined ? undefined : `shard ${model.shard}: a manifest is due twice`;
      }
      case "manifest-written":
        return written(court, model, event);
      case "stage-ended": {
        const stage = model.stage(event.job, event.stage);
        if (event.phase !== "COMPLETED" || !stage?.hasArray || stage.manifest !== undefined) return undefined;
        return `shard ${model.shard}: stage ${stage.spec.name} of job ${event.job} is complete without a manifest`;
      }
      default:
        return undefined;
    }
  },
};

function written(court: Court, model: ShardModel, event: EventOf<"manifest-written">): string | undefined {
  const stage = model.stage(event.job, event.stage);
  const what = `shard ${model.shard}: manifest ${event.no}`;
  if (!stage || stage.manifestDue !== event.no) return `${what} is written, and was not due`;
  // K3: at least as long as what is left of the job.
  if (court.pins.until(event.digest) === Number.NEGATIVE_INFINITY) return `${what} is not pinned`;
  const wrong = wrongEntries(court, stage, event);
  return wrong && `${what}: ${wrong}`;
}

function wrongEntries(court: Court, stage: ModelStage, { digest }: EventOf<"manifest-written">): string | undefined {
  const root = court.pins.bytes(digest);
  if (!root) return "it is not in the store";
  const pages = readRoot(root).sets.flatMap((set) => set.pages.map((page) => court.pins.bytes(page)));
  if (pages.some((page) => page === undefined)) return "a page of it is not in the store";
  const entries = pages.flatMap((page) => readPage(page as Uint8Array));
  if (entries.length !== stage.tasks.length) return `it has ${entries.length} of ${stage.tasks.length} tasks`;
  for (const [i, { no, key, generation, results }] of stage.tasks.entries()) {
    const entry = entries[i];
    const hasResult = results.has(generation);
    const isSame = entry?.task === no && entry.key === key && (entry.phase === "SUCCEEDED") === hasResult;
    if (!isSame || (hasResult && (entry.generation !== generation || entry.payload === undefined)))
      return `task ${no} of generation ${generation} is listed as ${JSON.stringify(entry)}`;
  }
  return undefined;
}
