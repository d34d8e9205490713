/** Whether an event starts a workflow, and why not (CI-53 to CI-59). */
import type { Filters, Triggers } from "#doors/ci/workflow/compile/triggers.ts";
import { patternsAccept } from "./pattern.ts";

export type EventFacts = {
  readonly name: string;
  /** Of the payload: opened, created, ... */
  readonly action?: string;
  /** `refs/heads/x`, `refs/tags/x`; for pull requests the ref of the base branch decides. */
  readonly ref?: string;
  readonly baseRef?: string;
  /** Undefined when they could not be found out: then path filters let everything pass. */
  readonly changedFiles?: readonly string[];
  /** The message of the newest commit. */
  readonly message?: string;
  /** For `workflow_run`: the workflow that ran. */
  readonly workflowName?: string;
};

export type Verdict = { readonly runs: true } | { readonly runs: false; readonly why: string };

const changedFilesMax = 3000;
const pullRequestTypes = ["opened", "synchronize", "reopened"];
const filtersByBase: ReadonlySet<string> = new Set(["pull_request", "pull_request_target", "merge_group"]);

export function triggered(on: Triggers, event: EventFacts): Verdict {
  const filters = Object.hasOwn(on.events, event.name) ? on.events[event.name] : undefined;
  if (!filters) return no(`the workflow does not run on ${event.name}`);
  if (isSkippedByMessage(event)) return no("the commit's message asks to skip it");
  return typesVerdict(filters, event) ?? refVerdict(filters, event) ?? pathVerdict(filters, event) ?? { runs: true };
}

const no = (why: string): Verdict => ({ runs: false, why });

/** Only pushes and pull requests can be skipped that way. */
function isSkippedByMessage({ name, message = "" }: EventFacts): boolean {
  if (name !== "push" && name !== "pull_request") return false;
  if (/\[(skip ci|ci skip|no ci|skip actions|actions skip)\]/i.test(message)) return true;
  return /\n\n(?:.*\n)*skip-checks: ?true\s*$/i.test(message);
}

function typesVerdict(filters: Filters, { name, action, workflowName }: EventFacts): Verdict | undefined {
  const standard = name.startsWith("pull_request") && !name.includes("review") ? pullRequestTypes : undefined;
  const types = filters.types ?? standard;
  if (types && action !== undefined && !types.includes(action)) return no(`its types do not have ${action}`);
  if (filters.workflows && workflowName !== undefined && !filters.workflows.includes(workflowName))
    return no(`its workflows do not have ${workflowName}`);
  return undefined;
}

function refVerdict(filters: Filters, event: EventFacts): Verdict | undefined {
  const ref = filtersByBase.has(event.name) ? (event.baseRef ?? event.ref) : event.ref;
  if (ref === undefined) return undefined;
  const hasBranches = filters.branches !== undefined || filters.branchesIgnore !== undefined;
  const hasTags = filters.tags !== undefined || filters.tagsIgnore !== undefined;
  if (!hasBranches && !hasTags) return undefined;
  const isTag = ref.startsWith("refs/tags/");
  const name = ref.replace(/^refs\/(heads|tags)\//, "");
  if (isTag && !hasTags) return no("it filters branches only, and this is a tag");
  if (!isTag && !hasBranches) return no("it filters tags only, and this is a branch");
  const [wanted, ignored] = isTag ? [filters.tags, filters.tagsIgnore] : [filters.branches, filters.branchesIgnore];
  if (wanted && !patternsAccept(wanted, name)) return no(`its filter does not let ${name} pass`);
  if (ignored && patternsAccept(ignored, name)) return no(`it ignores ${name}`);
  return undefined;
}

function pathVerdict(filters: Filters, { changedFiles, ref }: EventFacts): Verdict | undefined {
  if (!changedFiles || ref?.startsWith("refs/tags/")) return undefined;
  const files = changedFiles.slice(0, changedFilesMax);
  if (filters.paths && !files.some((file) => patternsAccept(filters.paths ?? [], file)))
    return no("no changed file is among its paths");
  if (filters.pathsIgnore && files.every((file) => patternsAccept(filters.pathsIgnore ?? [], file)))
    return no("it ignores all changed files");
  return undefined;
}
