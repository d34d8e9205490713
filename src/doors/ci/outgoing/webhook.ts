/**
 * Events of runs in the words of GitHub's webhooks (workflow_run, workflow_job, status), from items of the event feed.
 * They say what the feed says and no more: ids are ours, and addresses of pages are left out. Pure.
 */
import type { WebhookEvent } from "#door/door.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import { cellName } from "#doors/ci/cell-key.ts";
import { cellEnd } from "./cell-end.ts";
import { shownTitle } from "#doors/ci/runs/title.ts";

export function ciWebhook(item: FeedItem, result?: string): readonly WebhookEvent[] {
  switch (item.kind) {
    case "job":
      return ofRun(item);
    case "stage":
      // The first plan of the first job: from then on the run is in progress.
      return item.change === "planned" && item.stage?.index === 0 && item.stage.generation === 1
        ? [runEvent(item, "in_progress")]
        : [];
    case "task":
      return item.task?.planning ? [] : ofCell(item, result);
    default:
      return [];
  }
}

const conclusions: Readonly<Record<string, string>> = {
  SUCCEEDED: "success",
  FAILED: "failure",
  CANCELLED: "cancelled",
};

function ofRun(item: FeedItem): readonly WebhookEvent[] {
  if (item.change === "submitted") return [runEvent(item, "requested"), statusEvent(item, "pending")];
  if (item.change !== "ended") return [];
  const state = item.phase === "SUCCEEDED" ? "success" : item.phase === "FAILED" ? "failure" : "error";
  return [runEvent(item, "completed"), statusEvent(item, state)];
}

function runEvent(item: FeedItem, action: "requested" | "in_progress" | "completed"): WebhookEvent {
  const { job, name, tags = {}, phase } = item;
  const number = Number(tags["number"] ?? item.number ?? 0);
  const run = {
    id: job,
    name: tags["workflow"] ?? name,
    display_title: shownTitle(name, { run: job, number }),
    path: tags["path"] ?? "",
    run_number: number,
    run_attempt: Number(tags["attempt"] ?? 1),
    event: tags["event"] ?? "",
    status: action === "requested" ? "queued" : action,
    conclusion: action === "completed" ? (conclusions[phase] ?? "failure") : null,
    head_branch: tags["branch"] ?? "",
    head_sha: tags["sha"] ?? "",
    actor: { login: tags["actor"] ?? "" },
    updated_at: at(item),
  };
  return { event: "workflow_run", body: { action, workflow_run: run, ...around(item) } };
}

function statusEvent(item: FeedItem, state: "pending" | "success" | "failure" | "error"): WebhookEvent {
  const { tags = {}, name, reason } = item;
  const context = `${tags["workflow"] ?? name} (${tags["event"] ?? "manual"})`;
  const description = reason === undefined ? null : reason.slice(0, 140);
  const body = { sha: tags["sha"] ?? "", state, context, description, target_url: null, updated_at: at(item) };
  return { event: "status", body: { ...body, ...around(item) } };
}

/** queued, in_progress, completed; a job that is tried again is in progress again. */
function ofCell(item: FeedItem, result: string | undefined): readonly WebhookEvent[] {
  const { change } = item;
  if (change === "ready") return [cellEvent(item, "queued", null)];
  if (change === "started") return [cellEvent(item, "in_progress", null)];
  const end = cellEnd(item, result);
  return end ? [cellEvent(item, "completed", end)] : [];
}

function cellEvent(item: FeedItem, action: string, conclusion: string | null): WebhookEvent {
  const { job, tags = {}, task, stage } = item;
  const cell = {
    id: task?.id ?? "",
    run_id: job,
    run_attempt: Number(tags["attempt"] ?? 1),
    workflow_name: tags["workflow"] ?? "",
    name: cellName(task?.key ?? stage?.name ?? ""),
    status: action,
    conclusion,
    head_branch: tags["branch"] ?? "",
    head_sha: tags["sha"] ?? "",
    runner_name: task?.executor ?? null,
    ...(action === "in_progress" && { started_at: at(item) }),
    ...(action === "completed" && { completed_at: at(item) }),
  };
  return { event: "workflow_job", body: { action, workflow_job: cell, ...around(item) } };
}

const around = ({ tags = {} }: FeedItem) => ({
  repository: { full_name: tags["repository"] ?? "" },
  sender: { login: tags["actor"] ?? "" },
});

const at = (item: FeedItem): string => new Date(item.at).toISOString();
