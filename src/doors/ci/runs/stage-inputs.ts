/** What a stage of a run was planned from, as far as the run still knows. */
import type { BlobStore } from "#blobs/store.ts";
import type { JobView, PlanInputs, StageView } from "#kernel/read/query.ts";
import { ancestorsIn } from "#doors/ci/plan.ts";
import { withOutputs } from "./planners.ts";
import type { RunRecord, StoredRun } from "./record.ts";

/** History does not know which stages a stage waited for. */
export function withNeeds(view: JobView, record: RunRecord): JobView {
  const ancestors = ancestorsIn(record);
  const stages = view.stages.map((stage) => ({
    ...stage,
    needs: view.stages.flatMap((other) => (ancestors.get(stage.name)?.has(other.name) ? [other.stage] : [])),
  }));
  return { ...view, stages };
}

/** `view` is one with needs. */
export async function inputsOf(
  stage: StageView,
  { view, stored }: { readonly view: JobView; readonly stored: StoredRun },
  blobs: BlobStore,
): Promise<PlanInputs> {
  const needs = view.stages.filter((other) => stage.needs.includes(other.stage));
  const results = view.tasks.filter((task) => !task.planning && stage.needs.includes(task.stage));
  const inputs: PlanInputs = {
    spec: JSON.stringify(stored),
    stage: stage.name,
    generation: 1,
    needs: needs.map(({ stage: number, name, phase, generation }) => ({ stage: number, name, phase, generation })),
    signals: [],
    results: results.map(({ stage: number, key, generation, phase, result, lastFailure }) => ({
      stage: number,
      key,
      generation,
      phase,
      result,
      ...(!result && lastFailure && { failure: lastFailure }),
    })),
    next: undefined,
  };
  return await withOutputs(inputs, blobs);
}
