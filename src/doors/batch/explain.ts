/** Pure: a plan in words, before anything runs. Sizes that only the run can show are not made up. */
import { formatSize } from "#base/units.ts";
import type { PlanDocument } from "./documents.ts";
import { foreseeStages } from "./plan/cut/cut.ts";
import { sourceBytes, sourceTable, splitsOf } from "./plan/source.ts";
import type { Output, Stage } from "./plan/stage.ts";

export function explainPlan(document: PlanDocument, { withSql = false } = {}): readonly string[] {
  const { sources, settings, how } = document;
  const waves = foreseeStages(document);
  const numbers = new Map(waves.flatMap(({ stages }) => stages).map((stage, i) => [stage.id, i + 1]));
  const lines = sources.map((source, i) => {
    const splits = splitsOf(source, settings.splitBytes).length;
    const files = `${source.files.length} ${source.files.length === 1 ? "file" : "files"}`;
    return `${sourceTable(i)}: ${source.format}, ${files}, ${formatSize(sourceBytes(source))}, read in ${splits} ${splits === 1 ? "piece" : "pieces"}`;
  });
  if (how.kind === "one") lines.push(`one task: ${how.why}`);
  for (const [wave, { stages }] of waves.entries())
    for (const stage of stages) {
      lines.push(`stage ${numbers.get(stage.id)} (wave ${wave + 1}): ${stage.about}`);
      lines.push(`  digest ${stage.id}`);
      lines.push(`  reads ${readsOf(stage, numbers).join(", ") || "nothing"}`);
      lines.push(`  ${tasksText(stage)}, ${outputText(stage.output)}`);
      if (withSql) for (const { sql } of stage.branches) lines.push(`  sql ${sql}`);
    }
  return lines;
}

const readsOf = ({ branches }: Stage, numbers: ReadonlyMap<string, number>): readonly string[] => [
  ...new Set(
    branches.flatMap(({ inputs }) =>
      inputs.map((input) => {
        const name = input.from === "source" ? sourceTable(input.source) : `stage ${numbers.get(input.stage)}`;
        return input.take === "part" ? `${name} in parts` : name;
      }),
    ),
  ),
];

const words: Readonly<Record<Stage["branches"][number]["parts"]["by"], string>> = {
  one: "one task",
  source: "a task for each piece",
  partition: "a task for some partitions each",
  pack: "a task for some packs each",
  range: "a task for each range of the order",
};

const tasksText = ({ branches }: Stage): string =>
  [...new Set(branches.map(({ parts }) => words[parts.by]))].join("; ");

function outputText(output: Output): string {
  switch (output.kind) {
    case "hash":
      return `writes ${output.partitions} partitions by ${output.keys.map(({ sql }) => sql).join(", ")}`;
    case "sorted":
      return "writes its rows in order";
    case "whole":
      return "writes its rows for every reader";
    case "result":
      return "writes the result";
  }
}
