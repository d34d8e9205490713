/** Starts what a delivery asks for. */
import { Fault } from "#base/fault.ts";
import type { Repository } from "#sources/book.ts";
import type { PullRefs } from "#sources/pulls.ts";
import { dispatch } from "#doors/ci/runs/trigger/dispatch.ts";
import { type ComingEvent, runEvent, type Triggered, type TriggerPorts } from "#doors/ci/runs/trigger/trigger-event.ts";
import type { ForgeEvent, Pull } from "./forge-event.ts";
import type { Strangers } from "./strangers.ts";
import { fieldsOf } from "./reading.ts";

/** `id` is the same for the same delivery for ever. Forges are never trusted with the node itself. */
export async function runForgeEvent(
  ports: TriggerPorts & { readonly strangers: Pick<Strangers, "mustWait" | "learn"> },
  repository: Repository,
  id: string,
  event: ForgeEvent,
): Promise<Triggered> {
  if (event.dispatch) return await dispatched(ports, repository, id, event);
  const { pull, dispatch: _none, ...rest } = event;
  await ports.strangers.learn(repository, event);
  const waits = await ports.strangers.mustWait(repository, event);
  const coming: ComingEvent = { ...rest, id, isTrusted: false, ...(waits && { waitsFor: "approval" }) };
  return pull ? await pulled(ports, repository, coming, pull) : await runEvent(ports, repository, coming);
}

async function dispatched(
  ports: TriggerPorts,
  record: Repository,
  id: string,
  { dispatch: asked, actor }: ForgeEvent,
): Promise<Triggered> {
  if (!asked) throw new Fault("invalid", "start the workflow", { why: "nothing is asked for" });
  const wish = { record, ...asked, actor, isTrusted: false, key: `hook ${id}` };
  const { jobId, created } = await dispatch(ports, wish);
  return { started: [{ path: asked.workflow, run: jobId, created }], passed: [] };
}

/** CI-56: what merging would give is what runs; where that conflicts, nothing does. */
async function pulled(
  ports: TriggerPorts,
  repository: Repository,
  coming: ComingEvent,
  pull: Pull,
): Promise<Triggered> {
  const refs = await ports.sources.setPull(repository, {
    number: pull.number,
    head: pull.head,
    base: `refs/heads/${pull.baseRef}`,
  });
  const message = (await ports.sources.copies.resolve(repository, pull.head)).message;
  const about: ComingEvent = {
    ...coming,
    message,
    headRef: pull.headRef,
    baseRef: pull.baseRef,
    before: refs.base,
    isFork: pull.isFork,
    payload: withShas(coming.payload, refs),
  };
  const ran = await runEvent(ports, repository, atMerge(about, pull, refs));
  if (coming.name !== "pull_request") return ran;
  // the base's own workflow about the same request: it has secrets, so it never runs what the fork brings (CI-57)
  const { isFork: _ofFork, waitsFor: _noneWaits, ...base } = about;
  const target = await runEvent(ports, repository, { ...base, name: "pull_request_target", changedIn: refs.head });
  return { started: [...ran.started, ...target.started], passed: [...ran.passed, ...target.passed] };
}

function atMerge(about: ComingEvent, { number }: Pull, refs: PullRefs): ComingEvent {
  const { head, base, merge } = refs;
  if (about.action === "closed") return { ...about, ref: `refs/heads/${about.baseRef}`, sha: base, changedIn: head };
  if (merge === undefined) return { ...about, isConflict: true, ref: `refs/pull/${number}/head`, sha: head };
  return { ...about, ref: `refs/pull/${number}/merge`, sha: merge, pull: { number, head, base } };
}

/** Not all forges say which commit the base is at. */
function withShas(payload: ComingEvent["payload"], { head, base, merge }: PullRefs): ComingEvent["payload"] {
  const request = fieldsOf(payload["pull_request"]);
  const [from, to] = [fieldsOf(request["head"]), fieldsOf(request["base"])];
  const pull = {
    ...request,
    head: { ...from, sha: head },
    base: { ...to, sha: base },
    ...(merge !== undefined && { merge_commit_sha: merge }),
  };
  return { ...payload, pull_request: pull };
}
