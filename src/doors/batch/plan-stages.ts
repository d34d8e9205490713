/** Pure: from a plan and what its stages have written so far to the documents of the stages that run next. */
import { planOf, engineName, type PlanDocument, type StageDocument } from "./documents.ts";
import { cutPlan, type NextStages } from "./plan/cut/cut.ts";
import { columnNames, indices } from "./plan/quoting.ts";
import { stageOf, stagesNeeded, type Facts, type Stage } from "./plan/stage.ts";
import { sourceId, type Source } from "./plan/source.ts";
import { sourceTable } from "./plan/cut/source.ts";
import { tasksOf } from "./plan/tasks.ts";
import { typeNamed } from "./plan/type-names.ts";

export type NextDocuments = { readonly stages: readonly StageDocument[]; readonly isLast: boolean };

/** The manifests of what the stages read are left empty: they are for who writes them down. */
export function nextStages(plan: PlanDocument, facts: Facts): NextDocuments {
  const { stages, isLast, used } = stagesAfter(plan, facts);
  return { isLast, stages: stages.map((stage) => documentOf(stage, plan, facts, used)) };
}

export function stagesAfter(document: PlanDocument, facts: Facts): NextStages {
  const { sources, settings } = document;
  const plan = planOf(document);
  return plan
    ? cutPlan({ plan, sources, settings }, facts)
    : { stages: [singleStage(document)], isLast: true, used: new Map() };
}

/** The query as it is, in one task. */
export function singleStage({ how, sources, columns }: PlanDocument): Stage {
  const sql = how.kind === "one" ? how.sql : "";
  const names = columnNames(columns.length);
  const inputs = indices(sources.length).map((source) => ({
    name: sourceTable(source),
    from: "source" as const,
    source,
    take: "all" as const,
  }));
  const branch = { sql: `(select ${names} from (${sql}) t(${names}))`, inputs, parts: { by: "one" } } as const;
  const types = columns.map(({ type }) => typeNamed(type));
  const about = how.kind === "one" ? `all in one task: ${how.why}` : "all in one task";
  return stageOf({ about, branches: [branch], types, output: { kind: "result" } }, sources.map(sourceId));
}

function documentOf(stage: Stage, plan: PlanDocument, facts: Facts, used: ReadonlyMap<string, Stage>): StageDocument {
  const { sources, settings } = plan;
  return {
    version: 1,
    engine: engineName,
    stage,
    sources: usedSources(stage, sources),
    inputs: Object.fromEntries(
      stagesNeeded(stage).map((id) => [id, { manifest: "", types: used.get(id)?.types ?? [], producers: [] }]),
    ),
    parts: tasksOf(stage, { sources, settings }, facts),
  };
}

/** At their old places; those that the stage does not read are left out. */
function usedSources({ branches }: Stage, sources: readonly Source[]): readonly Source[] {
  const used = new Set(
    branches.flatMap(({ inputs }) => inputs.flatMap((one) => (one.from === "source" ? [one.source] : []))),
  );
  return sources.map((source, i) => (used.has(i) ? source : { ...source, files: [], columns: [] }));
}
