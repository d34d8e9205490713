/** What lint found. */
import type { Place, Problem } from "#doors/ci/workflow/problem.ts";

export const rules = {
  "workflow-error": "The workflow cannot be run as it is written.",
  "script-injection": "Text that strangers choose becomes part of a script.",
  "unknown-label": "No runner is known to have this label.",
  "unknown-repository": "The workflow is of a repository that is not known here.",
  "unpinned-action": "The action is named by a tag or branch, which others can move.",
  "never-runs": "The job's condition can never hold.",
  "always-runs": "The condition is a text, and a text is always true.",
  "unknown-step": "No earlier step of the job has this id.",
  "unknown-need": "The job does not need the job it asks about.",
  "deprecated-command": "The script prints a command that is no longer wanted.",
} as const;

export type Rule = keyof typeof rules;

export type Finding = {
  readonly rule: Rule;
  readonly level: "error" | "warning";
  readonly path: string;
  readonly at?: Place;
  readonly message: string;
};

export const findingOf = ({ path, at, message }: Problem): Finding => ({
  rule: "workflow-error",
  level: "error",
  path,
  ...(at && { at }),
  message,
});

export function findingText({ path, at, level, message, rule }: Finding): string {
  const place = at ? `${path}:${at.line}:${at.column}` : path;
  return `${place}: ${level}: ${message} [${rule}]`;
}
