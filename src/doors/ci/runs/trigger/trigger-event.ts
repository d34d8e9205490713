/** An event starts the workflows that run on it (CI-53 to CI-59), each once however often the event comes. */
import { createHash } from "node:crypto";
import { isFault } from "#base/fault.ts";
import type { Submitted } from "#shard/client/client.ts";
import type { Repository } from "#sources/book.ts";
import type { Commit } from "#sources/copies.ts";
import { noCommit } from "#sources/names.ts";
import type { Sources } from "#sources/sources.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
import { workflowFolder } from "#doors/ci/local/workflows.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { Dictionary, type PlainValue } from "#doors/ci/workflow/expression/value.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { type EventFacts, triggered, type Verdict } from "#doors/ci/workflow/trigger/trigger.ts";
import { foreignOf } from "./called-files.ts";
import { changedSince } from "./changed.ts";
import { workflowsOf } from "./files.ts";
import type { PullOf } from "#doors/ci/runs/record.ts";
import type { Switches } from "./switches.ts";
import type { RunEvent } from "#doors/ci/runs/github-context.ts";
import { requiredFor, type RequiredWorkflow } from "./required-workflow.ts";
import { shownPath, type Start, startRun, type StartPorts } from "#doors/ci/runs/start.ts";

export type ComingEvent = {
  /** The same event has the same id for ever. */
  readonly id: string;
  readonly name: string;
  readonly action?: string | undefined;
  /** What was pushed, or `refs/pull/N/merge`; left out: the default branch. */
  readonly ref?: string | undefined;
  /** Left out: what the ref means now. */
  readonly sha?: string | undefined;
  /** Of a push what the ref meant before, of a pull request the base. */
  readonly before?: string | undefined;
  /** Of a pull request: the branches that it comes from and goes to. */
  readonly headRef?: string | undefined;
  readonly baseRef?: string | undefined;
  readonly payload: Readonly<Record<string, PlainValue>>;
  readonly actor: string;
  readonly isTrusted: boolean;
  /** The message that may ask to skip; left out: that of the commit. */
  readonly message?: string | undefined;
  /** The commit whose changes count for path filters, where it is not the one that runs. */
  readonly changedIn?: string | undefined;
  /** What it brings comes from another repository: it gets no secrets (CI-57). */
  readonly isFork?: boolean;
  /** A person has to let it in first. */
  readonly waitsFor?: "approval";
  /** A pull request that cannot be merged: nothing runs (CI-56). */
  readonly isConflict?: boolean;
  /** What the merge is made of, so that every node can make it. */
  readonly pull?: PullOf;
  /** For `workflow_run`: the workflow that ran, on which branch, and how many led to it. */
  readonly after?: { readonly workflow: string; readonly branch: string; readonly chain: number };
};

export type Triggered = {
  readonly started: readonly { readonly path: string; readonly run: string; readonly created: boolean }[];
  /** Workflows that did not run, and why. */
  readonly passed: readonly { readonly path: string; readonly why: string }[];
};

export type TriggerPorts = StartPorts & {
  readonly sources: Sources;
  readonly switches: Pick<Switches, "disabled">;
  /** Workflows that owners of repositories have run for all of them. */
  readonly required?: readonly RequiredWorkflow[];
  /** Called with the workflows of the default branch, whenever it is seen. */
  readonly seen?: (repository: Repository, files: readonly SourceFile[], isTrusted?: boolean) => Promise<void>;
};

/** These take the workflow of the default branch, whatever they are about (CI-56). */
const ofDefaultBranch: ReadonlySet<string> = new Set([
  "pull_request_target",
  "schedule",
  "repository_dispatch",
  "workflow_run",
  "issue_comment",
]);

export async function runEvent(ports: TriggerPorts, repository: Repository, event: ComingEvent): Promise<Triggered> {
  if (event.sha === noCommit) return { started: [], passed: [] }; // a branch that was deleted
  const { sources } = ports;
  const commit = await commitOf(sources, repository, event);
  const files = await workflowsOf(sources, repository, commit.sha);
  if (event.name === "push" && commit.ref === `refs/heads/${commit.defaultBranch}`)
    await ports.seen?.(repository, files, event.isTrusted);
  const facts = await factsOf(sources, repository, commit, event);
  const disabled = await ports.switches.disabled(repository);
  const foreign = foreignOf(sources, repository.tenant);
  const ends: Ended[] = [];
  for (const file of files) {
    const of = { repository, commit, files, foreign, path: file.path };
    ends.push(
      await startIf(ports, of, event, disabled.has(file.path) ? no("it is disabled") : verdictOf(file, facts, event)),
    );
  }
  for (const one of requiredFor(ports.required ?? [], repository)) {
    const of = { repository, commit, foreign, path: `${workflowFolder}/${one.workflow}` };
    ends.push(
      await startRequired(ports, one, of, (file) =>
        startIf(ports, { ...of, ...file }, event, verdictOf(file.own, facts, event)),
      ),
    );
  }
  return {
    started: ends.flatMap((one) => ("run" in one ? one : [])),
    passed: ends.flatMap((one) => ("why" in one ? one : [])),
  };
}

type Ended = Triggered["started"][number] | Triggered["passed"][number];
type Starting = { readonly repository: Repository } & Pick<Start, "commit" | "files" | "foreign" | "path" | "from">;

async function startIf(ports: StartPorts, of: Starting, event: ComingEvent, verdict: Verdict): Promise<Ended> {
  const path = shownPath(of);
  if (!verdict.runs) return { path, why: verdict.why.slice(0, 1_000) };
  try {
    const { jobId, created } = await startOne(ports, of, event);
    return { path, run: jobId, created };
  } catch (error) {
    // one that cannot start, for example because of its run-name, does not keep the others from it
    if (!isFault(error, "invalid")) throw error;
    return { path, why: error.message.slice(0, 1_000) };
  }
}

/** Finds the file; one that is not there is told with the workflows that did not run. */
async function startRequired(
  { sources }: TriggerPorts,
  { repository: name, ref }: RequiredWorkflow,
  { repository, path }: Pick<Starting, "repository" | "path">,
  start: (file: Pick<Starting, "files" | "from"> & { readonly own: SourceFile }) => Promise<Ended>,
): Promise<Ended> {
  try {
    const source = await sources.get(repository.tenant, name);
    const { sha, ref: at } = await sources.copies.resolve(source, ref);
    const files = await workflowsOf(sources, source, sha);
    const own = files.find((file) => file.path === path);
    if (own) return await start({ own, files, from: { repository: source.name, sha, ref: at } });
  } catch (error) {
    if (!isFault(error, "not-found") && !isFault(error, "invalid")) throw error;
  }
  return { path: `${name}/${path}`, why: "it is required, and cannot be found" };
}

const no = (why: string): Verdict => ({ runs: false, why });

function verdictOf(file: SourceFile, facts: EventFacts, { isConflict = false, after }: ComingEvent): Verdict {
  const compiled = compileOnce(file);
  if (!compiled.ok) return no(compiled.problems.map((problem) => problemText(problem)).join("; "));
  const verdict = triggered(compiled.workflow.on, facts);
  if (!verdict.runs) return verdict;
  if (isConflict) return no("the pull request conflicts with its base");
  if (after && after.chain > chainMax) return no(`more than ${chainMax} workflows ran because of one another`);
  return verdict;
}

/** As on GitHub: workflows that start one another come to an end. */
const chainMax = 3;

async function startOne(ports: StartPorts, { repository, ...of }: Starting, event: ComingEvent): Promise<Submitted> {
  // the run's key: the same event, file and commit never make a second run
  const key = createHash("sha256")
    .update(JSON.stringify([event.id, event.name, shownPath(of), of.commit.sha]))
    .digest("hex");
  return await startRun(ports, {
    ...of,
    tenant: repository.tenant,
    repository: repository.name,
    event: runEventOf(event, of.commit),
    inputs: new Dictionary(),
    actor: event.actor,
    isTrusted: event.isTrusted,
    ...(event.isFork && { isFork: true }),
    ...(event.waitsFor && { waitsFor: event.waitsFor }),
    ...(event.pull && { pull: event.pull }),
    ...(event.after && { chain: event.after.chain }),
    key: `event ${key}`,
    payload: key,
  });
}

async function commitOf(sources: Sources, repository: Repository, event: ComingEvent): Promise<Commit> {
  if (ofDefaultBranch.has(event.name)) return await sources.copies.resolve(repository);
  const commit = await sources.copies.resolve(repository, event.sha ?? event.ref);
  return { ...commit, ref: event.ref ?? commit.ref };
}

function runEventOf({ name, action, headRef, baseRef, payload, before }: ComingEvent, commit: Commit): RunEvent {
  const pushed = {
    ref: commit.ref,
    before: before ?? commit.before,
    after: commit.sha,
    head_commit: { id: commit.sha, message: commit.message, author: { name: commit.author } },
  };
  return {
    name,
    payload: { ...(name === "push" && pushed), ...(action !== undefined && { action }), ...payload },
    ...(headRef !== undefined && { headRef }),
    ...(baseRef !== undefined && { baseRef }),
  };
}

/** CI-55: a push is compared with what was there before, a pull request with where it parted from its base. */
async function factsOf(
  sources: Sources,
  repository: Repository,
  commit: Commit,
  { name, action, before, baseRef, payload, message, changedIn, after }: ComingEvent,
): Promise<EventFacts> {
  const isPull = name.startsWith("pull_request");
  const from = isPull ? (before ?? baseShaIn(payload)) : (before ?? commit.before);
  const changedFiles =
    from === undefined || (name !== "push" && !isPull)
      ? undefined
      : await changedSince(sources.copies, repository, { from, to: changedIn ?? commit.sha, isPull });
  return {
    name,
    ref: after ? `refs/heads/${after.branch}` : commit.ref,
    message: message ?? commit.message,
    ...(action !== undefined && { action }),
    ...(baseRef !== undefined && { baseRef: `refs/heads/${baseRef}` }),
    ...(changedFiles && { changedFiles }),
    ...(after && { workflowName: after.workflow }),
  };
}

function baseShaIn(payload: ComingEvent["payload"]): string | undefined {
  const pull = payload["pull_request"] as { readonly base?: { readonly sha?: PlainValue } } | undefined;
  const sha = pull?.base?.sha;
  return typeof sha === "string" ? sha : undefined;
}

/** Looks at the default branch of a repository, for schedules and the like; one without a commit has none. */
export async function lookAt(ports: TriggerPorts, repository: Repository, isTrusted: boolean): Promise<void> {
  try {
    const { sha } = await ports.sources.copies.resolve(repository);
    await ports.seen?.(repository, await workflowsOf(ports.sources, repository, sha), isTrusted);
  } catch (error) {
    if (!isFault(error, "not-found")) throw error;
  }
}

/** Starts what pushes to repositories of this cluster ask for, until the node leaves. */
export async function followPushes(
  ports: TriggerPorts,
  {
    signal,
    warn,
  }: {
    readonly signal: AbortSignal;
    readonly warn: (repository: string, error: unknown) => void;
  },
): Promise<void> {
  const { sources } = ports;
  for await (const push of sources.pushes.follow(signal)) {
    const { tenant, repository: name, ref, before, after, pusher, isOperators: isTrusted, id } = push;
    try {
      if (!(await sources.isOwn(tenant, name))) continue; // the node that keeps it starts its runs
      const repository = await sources.get(tenant, name);
      const event = { id, name: "push", ref, sha: after, before, payload: {}, actor: pusher, isTrusted };
      await runEvent(ports, repository, event);
    } catch (error) {
      if (signal.aborted) return;
      // it will be tried when this node starts again
      if (isFault(error, "unavailable")) continue;
      warn(name, error);
      // No push keeps those behind it from their runs; what is not its own fault is tried again, too.
      if (!isFault(error, "invalid") && !isFault(error, "not-found")) continue;
    }
    await sources.pushes.handled(push);
  }
}
