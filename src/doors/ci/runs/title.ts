/**
 * What a run is called: its own `run-name`, or the workflow's name. Pure.
 *
 * A run gets its id and its number when it is recorded, and its title is a part of that record. So where a title has
 * them in it, the record has the words `${{ github.run_number }}` in their place, and every reader puts them in.
 */
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary, type PlainValue, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { templateText } from "#doors/ci/workflow/plan/template.ts";
import { numericRunId } from "#doors/ci/job/run-id.ts";
import type { RunRecord } from "./record.ts";

const titleLengthMax = 200;

const wordOf = (name: string): string => `\${{ github.${name} }}`;
const [idWord, numberWord] = [wordOf("run_id"), wordOf("run_number")];

/** Throws a TemplateFault if the name's expression has no value. */
export function titleOf(
  { name, path, runName }: Pick<Workflow, "name" | "path" | "runName">,
  { github, inputs, vars }: Pick<RunRecord, "github" | "inputs" | "vars">,
  attempt = 1,
): string {
  const usual = name ?? path;
  if (!runName) return usual;
  const known = github as Readonly<Record<string, PlainValue>>;
  const contexts = new Dictionary([
    ["github", valueOf({ ...known, run_id: idWord, run_number: numberWord, run_attempt: String(attempt) })],
    ["inputs", valueOf(inputs)],
    ["vars", valueOf(vars)],
  ]);
  const text = cut(templateText(runName, { contexts }).trim());
  return text === "" ? usual : text.replaceAll("\0", "");
}

/** Never within a word that readers replace. */
function cut(text: string): string {
  return text.length <= titleLengthMax ? text : text.slice(0, titleLengthMax).replace(/\$(?:\{(?:\{[^}]*\}?)?)?$/, "");
}

/** A title as people read it. */
export const shownTitle = (
  title: string,
  { run, number }: { readonly run: string; readonly number: number | undefined },
): string =>
  title.includes("${{")
    ? title.replaceAll(idWord, () => String(numericRunId(run))).replaceAll(numberWord, () => String(number ?? 1))
    : title;
