/** Pure: from a plan and what its stages have written so far to the documents of the stages that run next. */
import { engineName, type PlanDocument, type StageDocument } from "./documents.ts";
import { cutPlan } from "./plan/cut/cut.ts";
import { stagesNeeded, type Facts, type Stage } from "./plan/stage.ts";
import type { Source } from "./plan/source.ts";
import { tasksOf } from "./plan/tasks.ts";

export type NextDocuments = { readonly stages: readonly StageDocument[]; readonly isLast: boolean };

/** The manifests of what the stages read are left empty: they are for who writes them down. */
export function nextStages(plan: PlanDocument, facts: Facts): NextDocuments {
  const { stages, isLast, used } = cutPlan(plan, facts);
  return { isLast, stages: stages.map((stage) => documentOf(stage, plan, facts, used)) };
}

function documentOf(stage: Stage, plan: PlanDocument, facts: Facts, used: ReadonlyMap<string, Stage>): StageDocument {
  const { sources, settings, asker, packs } = plan;
  return {
    version: 1,
    engine: engineName,
    ...(packs && { packs }),
    stage,
    sources: usedSources(stage, sources),
    inputs: Object.fromEntries(
      stagesNeeded(stage).map((id) => [id, { manifest: "", types: used.get(id)?.types ?? [], producers: [] }]),
    ),
    parts: tasksOf(stage, { sources, settings }, facts),
    ...(asker && { asker }),
  };
}

/** At their old places; those that the stage does not read are left out. */
function usedSources({ branches }: Stage, sources: readonly Source[]): readonly Source[] {
  const used = new Set(
    branches.flatMap(({ inputs }) => inputs.flatMap((one) => (one.from === "source" ? [one.source] : []))),
  );
  return sources.map((source, i) => (used.has(i) ? source : { ...source, files: [], columns: [] }));
}
