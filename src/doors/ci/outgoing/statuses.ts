/**
 * Statuses of commits at the forge that they come from, as GitHub, Gitea or Forgejo, and GitLab take them. The address
 * of the webhook is that of the forge's API, its secret a token of the forge. Of a pull request the status is that of
 * its head, since the merge that runs is known here alone. Pure.
 */
import type { WebhookEvent, WebhookFormat } from "#door/door.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import { cellName } from "#doors/ci/cell-key.ts";
import { asksForResult, cellEnd } from "./cell-end.ts";

type State = "pending" | "running" | "success" | "failure" | "cancelled";
type Status = {
  readonly repository: string;
  readonly sha: string;
  readonly context: string;
  readonly state: State;
  readonly description: string;
};

const descriptionMax = 140;
const contextMax = 250;

/** Undefined for what changes no status, and for runs of no commit. */
export function statusOf(item: FeedItem, result?: string): Status | undefined {
  const { tags = {}, name, kind, task, stage } = item;
  const [sha, repository] = [tags["head"] ?? tags["sha"] ?? "", tags["repository"] ?? ""];
  if (!/^[\da-f]{40}(?:[\da-f]{24})?$/.test(sha) || !/^[^/]+\/[^/]+$/.test(repository)) return undefined;
  const state =
    kind === "job" ? runState(item) : kind === "task" && !task?.planning ? cellState(item, result) : undefined;
  if (!state) return undefined;
  const workflow = tags["workflow"] ?? name;
  const job = kind === "task" ? ` / ${cellName(task?.key ?? stage?.name ?? "")}` : "";
  const context = `${workflow}${job} (${tags["event"] ?? "manual"})`.slice(0, contextMax);
  return { repository, sha, context, state, description: descriptionOf(item, state) };
}

const ended: Readonly<Record<string, State>> = { SUCCEEDED: "success", FAILED: "failure", CANCELLED: "cancelled" };

function runState({ change, phase }: FeedItem): State | undefined {
  if (change === "submitted") return "pending";
  return change === "ended" ? (ended[phase] ?? "failure") : undefined;
}

function cellState(item: FeedItem, result: string | undefined): State | undefined {
  if (item.change === "ready") return "pending";
  if (item.change === "started") return "running";
  const end = cellEnd(item, result);
  return end === "skipped" ? "success" : end;
}

const words: Readonly<Record<State, string>> = {
  pending: "waits",
  running: "is running",
  success: "succeeded",
  failure: "failed",
  cancelled: "was cancelled",
};

function descriptionOf({ job, reason }: FeedItem, state: State): string {
  const because = reason === undefined || reason === "" || state === "success" ? "" : `: ${reason}`;
  return `${job} ${words[state]}${because}`.slice(0, descriptionMax);
}

/** What it says of the commit or of the call will not be otherwise the next time. */
const isFinal = (status: number): boolean => [400, 404, 409, 410, 422].includes(status);

const event = "status";
const escaped = (repository: string): string => repository.split("/").map(encodeURIComponent).join("/");

const rendered =
  (of: (status: Status) => Omit<WebhookEvent, "event">) =>
  (item: FeedItem, result?: string): readonly WebhookEvent[] => {
    const status = statusOf(item, result);
    return status ? [{ event, ...of(status) }] : [];
  };

/** GitHub knows no running, and calls what was cancelled an error; Gitea and Forgejo do as GitHub does. */
const githubStates = {
  pending: "pending",
  running: "pending",
  success: "success",
  failure: "failure",
  cancelled: "error",
} as const;

const asGithub = ({ repository, sha, context, state, description }: Status): Omit<WebhookEvent, "event"> => ({
  path: `/repos/${escaped(repository)}/statuses/${sha}`,
  body: { state: githubStates[state], context, description },
});

const gitlabStates = {
  pending: "pending",
  running: "running",
  success: "success",
  failure: "failed",
  cancelled: "canceled",
} as const;

const asGitlab = ({ repository, sha, context, state, description }: Status): Omit<WebhookEvent, "event"> => ({
  path: `/projects/${encodeURIComponent(repository)}/statuses/${sha}`,
  body: { state: gitlabStates[state], name: context, description },
});

const shared = { asksFor: asksForResult, isFinal };

export const statusFormats: Readonly<Record<string, WebhookFormat>> = {
  "ci:github": {
    render: rendered(asGithub),
    headers: (token) => ({
      authorization: `Bearer ${token}`,
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
    }),
    ...shared,
  },
  "ci:gitea": { render: rendered(asGithub), headers: (token) => ({ authorization: `token ${token}` }), ...shared },
  "ci:gitlab": { render: rendered(asGitlab), headers: (token) => ({ "private-token": token }), ...shared },
};
