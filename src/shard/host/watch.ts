/** One watch, from the owner's side: a snapshot or the missed events, then new events as they become durable. */
import type { ShardId } from "#base/ids.ts";
import { answer } from "#kernel/read/answer.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { HostedShard } from "./shard.ts";
import type { Stamp, WatchMessage, WatchRequest } from "#shard/transport/protocol.ts";
import type { Watcher } from "#shard/watch/watchers.ts";

export type WatchPorts = {
  readonly request: WatchRequest;
  readonly signal: AbortSignal;
  /** The shard, while it is served here. */
  readonly find: (shard: ShardId) => HostedShard | undefined;
  readonly hintOf: (shard: ShardId) => string | undefined;
  readonly touch: (shard: HostedShard) => void;
};

export async function* serveWatch(ports: WatchPorts): AsyncGenerator<WatchMessage> {
  const { request, signal } = ports;
  const shard = ports.find(request.shard);
  if (!shard?.watchers.hasRoomFor(request)) {
    yield { kind: "moved", hint: shard ? undefined : ports.hintOf(request.shard) };
    return;
  }
  const watcher = shard.watchers.create(request);
  const leave = (): void => watcher.close();
  if (signal.aborted) return;
  signal.addEventListener("abort", leave, { once: true });
  try {
    begin(ports, shard, watcher, request.after);
    for (;;) {
      const message = signal.aborted ? undefined : watcher.read();
      if (message) {
        yield message;
      } else if (watcher.closed && !(watcher.behind && !signal.aborted)) {
        return;
      } else if (watcher.behind) {
        if (watcher.closed || ports.find(request.shard) !== shard) {
          yield { kind: "moved", hint: ports.hintOf(request.shard) };
          return;
        }
        watcher.behind = false;
        begin(ports, shard, watcher, undefined);
      } else {
        await watcher.ready();
      }
    }
  } finally {
    signal.removeEventListener("abort", leave);
    shard.watchers.remove(watcher);
    watcher.leave();
  }
}

/**
 * The beginning of a watch is a read like any other: it waits for its batch. The view is taken when the batch is
 * closed, so that the batch's events are either all in it or all still to come.
 */
function begin(ports: WatchPorts, shard: HostedShard, watcher: Watcher, after: Stamp | undefined): void {
  const { open, watchers } = shard;
  const first = look(shard, watcher.request, 0);
  let seen = first;
  // "Unknown" is answered under a confirmed epoch only.
  if (!first.ok) open.needsConfirm = true;
  else open.atSeal.push(() => (seen = look(shard, watcher.request)));
  open.atRelease.push((stamp) => {
    if (watcher.closed) return;
    if (!seen.ok) watchers.reject(watcher, stamp, seen.rejection);
    else if (after !== undefined && watchers.canResume(after, stamp.seq))
      watchers.resume(watcher, after, { stamp, ended: seen.view.endedAtMs !== undefined });
    else watchers.begin(watcher, stamp, seen.view);
  });
  open.atLoss.push(() => {
    watcher.push({ kind: "moved", hint: ports.hintOf(watcher.request.shard) });
    watcher.close();
  });
  ports.touch(shard);
}

type FirstView = { readonly ok: true; readonly view: JobView } | { readonly ok: false; readonly rejection: Rejection };

function look(shard: HostedShard, { job, tenant }: WatchRequest, tasksMax?: number): FirstView {
  const query = {
    kind: "job",
    job,
    ...(tenant === undefined ? {} : { tenant }),
    ...(tasksMax === undefined ? {} : { tasksMax }),
  } as const;
  const outcome = answer(shard.state, query, shard.nowMs());
  return outcome.ok ? { ok: true, view: outcome.answer as JobView } : outcome;
}
