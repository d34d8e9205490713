/** An event starts the workflows that run on it (CI-53 to CI-59), each once however often the event comes. */
import { createHash } from "node:crypto";
import { isFault } from "#base/fault.ts";
import type { Submitted } from "#shard/client/client.ts";
import type { Repository } from "#sources/book.ts";
import type { Commit } from "#sources/copies.ts";
import { noCommit } from "#sources/names.ts";
import type { Sources } from "#sources/sources.ts";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import { Dictionary, type PlainValue } from "#doors/ci/workflow/expression/value.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { type EventFacts, triggered } from "#doors/ci/workflow/trigger/trigger.ts";
import { foreignOf } from "./called-files.ts";
import { workflowsOf } from "./files.ts";
import type { RunEvent } from "./github-context.ts";
import { type Start, startRun, type StartPorts } from "./start.ts";

export type ComingEvent = {
  /** The same event has the same id for ever. */
  readonly id: string;
  readonly name: string;
  readonly action?: string | undefined;
  /** What was pushed, or `refs/pull/N/merge`; left out: the default branch. */
  readonly ref?: string | undefined;
  /** Left out: what the ref means now. */
  readonly sha?: string | undefined;
  readonly before?: string | undefined;
  /** Of a pull request: the branches that it comes from and goes to. */
  readonly headRef?: string | undefined;
  readonly baseRef?: string | undefined;
  readonly payload: Readonly<Record<string, PlainValue>>;
  readonly actor: string;
  readonly isTrusted: boolean;
};

export type Triggered = {
  readonly started: readonly { readonly path: string; readonly run: string; readonly created: boolean }[];
  /** Workflows that did not run, and why. */
  readonly passed: readonly { readonly path: string; readonly why: string }[];
};

/** These take the workflow of the default branch, whatever they are about (CI-56). */
const ofDefaultBranch: ReadonlySet<string> = new Set([
  "pull_request_target",
  "schedule",
  "repository_dispatch",
  "workflow_run",
  "issue_comment",
]);

export async function runEvent(
  ports: StartPorts,
  sources: Sources,
  repository: Repository,
  event: ComingEvent,
): Promise<Triggered> {
  if (event.sha === noCommit) return { started: [], passed: [] }; // a branch that was deleted
  const commit = await commitOf(sources, repository, event);
  const files = await workflowsOf(sources, repository, commit.sha);
  const facts = await factsOf(sources, repository, commit, event);
  const foreign = foreignOf(sources, repository.tenant);
  const started: Triggered["started"][number][] = [];
  const passed: Triggered["passed"][number][] = [];
  for (const { path, text } of files) {
    const compiled = compile({ path, text });
    const verdict = compiled.ok
      ? triggered(compiled.workflow.on, facts)
      : { runs: false as const, why: compiled.problems.map((problem) => problemText(problem)).join("; ") };
    if (!verdict.runs) {
      passed.push({ path, why: verdict.why.slice(0, 1_000) });
      continue;
    }
    try {
      const { jobId, created } = await startOne(ports, { repository, commit, files, foreign, path }, event);
      started.push({ path, run: jobId, created });
    } catch (error) {
      // one that cannot start, for example because of its run-name, does not keep the others from it
      if (!isFault(error, "invalid")) throw error;
      passed.push({ path, why: error.message.slice(0, 1_000) });
    }
  }
  return { started, passed };
}

async function startOne(
  ports: StartPorts,
  { repository, ...of }: { readonly repository: Repository } & Pick<Start, "commit" | "files" | "foreign" | "path">,
  event: ComingEvent,
): Promise<Submitted> {
  const key = createHash("sha256")
    .update(JSON.stringify([event.id, of.path, of.commit.sha]))
    .digest("hex");
  return await startRun(ports, {
    ...of,
    tenant: repository.tenant,
    repository: repository.name,
    event: runEventOf(event, of.commit),
    inputs: new Dictionary(),
    actor: event.actor,
    isTrusted: event.isTrusted,
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
  { name, action, before, baseRef, payload }: ComingEvent,
): Promise<EventFacts> {
  const isPull = name.startsWith("pull_request");
  const from = isPull ? baseShaIn(payload) : (before ?? commit.before);
  const changedFiles =
    from === undefined || (name !== "push" && !isPull)
      ? undefined
      : await sources.copies.changedFiles(repository, from, commit.sha, isPull ? "..." : "..");
  return {
    name,
    ref: commit.ref,
    message: commit.message,
    ...(action !== undefined && { action }),
    ...(baseRef !== undefined && { baseRef: `refs/heads/${baseRef}` }),
    ...(changedFiles && { changedFiles }),
  };
}

function baseShaIn(payload: ComingEvent["payload"]): string | undefined {
  const pull = payload["pull_request"] as { readonly base?: { readonly sha?: PlainValue } } | undefined;
  const sha = pull?.base?.sha;
  return typeof sha === "string" ? sha : undefined;
}

/** Starts what pushes to repositories of this cluster ask for, until the node leaves. */
export async function followPushes(
  ports: StartPorts,
  sources: Sources,
  {
    signal,
    warn,
  }: {
    readonly signal: AbortSignal;
    readonly warn: (repository: string, error: unknown) => void;
  },
): Promise<void> {
  for await (const push of sources.pushes.follow(signal)) {
    const { tenant, repository: name, ref, before, after, pusher, isOperators: isTrusted, id } = push;
    try {
      const repository = await sources.get(tenant, name);
      const event = { id, name: "push", ref, sha: after, before, payload: {}, actor: pusher, isTrusted };
      await runEvent(ports, sources, repository, event);
    } catch (error) {
      if (signal.aborted) return;
      // another node keeps it, and starts its runs; or it will be tried when this node starts again
      if (isFault(error, "unavailable")) continue;
      warn(name, error);
      // No push keeps those behind it from their runs; what is not its own fault is tried again, too.
      if (!isFault(error, "invalid") && !isFault(error, "not-found")) continue;
    }
    await sources.pushes.handled(push);
  }
}
