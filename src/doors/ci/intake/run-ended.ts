/** The end of a run as an event: `workflow_run`. It is durable before the run is over, as deliveries of forges are. */
import { z } from "zod";
import { numericRunId } from "#doors/ci/job/run-id.ts";
import { sandboxLabel } from "#doors/ci/plan.ts";
import type { Listeners } from "#doors/ci/runs/trigger/listeners.ts";
import type { RunAbout, RunRecord } from "#doors/ci/runs/record.ts";
import { shortRef } from "#doors/ci/runs/tags.ts";
import { shownTitle } from "#doors/ci/runs/title.ts";
import type { ComingEvent } from "#doors/ci/runs/trigger/trigger-event.ts";
import type { Deliveries } from "./deliveries.ts";

export type EndedRun = {
  readonly tenant: string;
  readonly jobId: string;
  readonly number: number;
  readonly about: RunAbout;
  readonly record: RunRecord;
  readonly conclusion: "success" | "failure" | "cancelled";
};

const Body = z.object({
  isTrusted: z.boolean(),
  chain: z.int(),
  workflow: z.string(),
  branch: z.string(),
  actor: z.string(),
  payload: z.record(z.string(), z.unknown()),
});

export const runEnded =
  ({ deliveries, listeners }: { readonly deliveries: Pick<Deliveries, "accept">; readonly listeners: Listeners }) =>
  async ({ tenant, jobId, number, about, record, conclusion }: EndedRun): Promise<void> => {
    if (!(await listeners.has(tenant, about.repository))) return;
    const branch = shortRef(about.ref);
    const run = {
      id: numericRunId(jobId),
      name: about.workflow,
      path: about.path,
      display_title: shownTitle(about.title, { run: jobId, number }),
      event: about.event,
      status: "completed",
      conclusion,
      head_branch: branch,
      head_sha: about.sha,
      run_number: number,
      run_attempt: about.attempt ?? 1,
    };
    const payload: z.input<typeof Body> = {
      isTrusted: !(record.requires ?? []).includes(sandboxLabel),
      chain: (record.chain ?? 0) + 1,
      workflow: about.workflow,
      branch,
      actor: about.actor,
      payload: { workflow_run: run, workflow: { name: about.workflow, path: about.path } },
    };
    const what = { repository: about.repository, forge: "node", event: "workflow_run", id: `run ${jobId}` } as const;
    await deliveries.accept(tenant, { ...what, payload });
  };

export function endedEvent(id: string, body: unknown): ComingEvent {
  const { isTrusted, chain, workflow, branch, actor, payload } = Body.parse(body);
  return {
    id,
    name: "workflow_run",
    action: "completed",
    actor,
    isTrusted,
    payload: payload as ComingEvent["payload"],
    after: { workflow, branch, chain },
  };
}
