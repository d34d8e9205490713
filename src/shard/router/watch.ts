/** One watch made of several: each owner's stream in turn, from where the last one stopped, nothing repeated. */
import { Deadline, orAborted } from "#base/calls/abort.ts";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Stamp, WatchMessage, WatchRequest } from "#shard/transport/protocol.ts";
import type { Backoff } from "./backoff.ts";
import type { Address } from "#shard/transport/transport.ts";

export type WatchPorts = {
  readonly clock: Clock;
  readonly options: { readonly watchSilenceMs: number; readonly watchLostMsMax: number };
  backoff(): Backoff;
  known(): Address | undefined;
  find(): Promise<Address | undefined>;
  forget(to: Address): void;
  correct(to: Address, hint: Address | undefined): boolean;
  /** From an owner that has a successor. */
  isPast(stamp: Stamp): boolean;
  see(stamp: Stamp): void;
  open(to: Address, from: WatchRequest, signal: AbortSignal): AsyncIterable<WatchMessage>;
};

type Message = Exclude<WatchMessage, { kind: "moved" }>;
/** How one owner's stream ended: "done" is the end of the watch. */
type Ended = { readonly done: boolean; readonly hinted: boolean; readonly why: string };

export async function* watchThrough(
  request: WatchRequest,
  signal: AbortSignal,
  ports: WatchPorts,
): AsyncGenerator<Message> {
  const { clock, options } = ports;
  const backoff = ports.backoff();
  let after = request.after;
  let heardAtMs = clock.monotonicMs();
  for (;;) {
    signal.throwIfAborted();
    const to = ports.known() ?? (await orAborted(ports.find(), signal));
    let ended: Ended = { done: false, hinted: false, why: "the shard has no owner" };
    if (to !== undefined) {
      const from = after === undefined ? request : { ...request, after };
      ended = yield* oneOwner(to, from, signal, ports, (stamp) => {
        heardAtMs = clock.monotonicMs();
        backoff.reset();
        after = stamp;
      });
    }
    if (ended.done) return;
    const lostMs = clock.monotonicMs() - heardAtMs;
    if (lostMs >= options.watchLostMsMax)
      throw new Fault("unavailable", "watch job", { shard: request.shard, job: request.job, lostMs, last: ended.why });
    if (!ended.hinted) await clock.sleep(backoff.next(), signal);
  }
}

async function* oneOwner(
  to: Address,
  from: WatchRequest,
  signal: AbortSignal,
  ports: WatchPorts,
  heard: (stamp: Stamp) => void,
): AsyncGenerator<Message, Ended> {
  const { clock, options } = ports;
  const silence = (): Fault => new Fault("unavailable", "watch job", { to, silentMs: options.watchSilenceMs });
  const limited = new Deadline(clock, options.watchSilenceMs, signal, silence);
  let newest = from.after;
  try {
    for await (const message of ports.open(to, from, limited.signal)) {
      if (message.kind === "moved") return { done: false, hinted: ports.correct(to, message.hint), why: "moved" };
      if (ports.isPast(message.stamp)) break;
      ports.see(message.stamp);
      // Batches are numbered: skip one that was delivered before, by this owner or the last.
      const isNews = message.kind !== "events" || !newest || message.stamp.seq > newest.seq;
      if (isNews && !(newest && message.kind === "snapshot" && message.stamp.seq < newest.seq)) {
        newest = message.stamp;
        heard(message.stamp);
        limited.extend(Number.POSITIVE_INFINITY); // a slow reader must not count as a silent owner
        yield message;
      }
      if (message.kind === "end" || message.kind === "rejected") return { done: true, hinted: false, why: "ended" };
      limited.extend(options.watchSilenceMs);
    }
    ports.forget(to);
    return { done: false, hinted: false, why: "the stream ended early" };
  } catch (error) {
    signal.throwIfAborted();
    if (!isFault(error) || error.code === "invalid" || error.code === "not-found") throw error;
    ports.forget(to);
    return { done: false, hinted: false, why: error.message };
  } finally {
    limited[Symbol.dispose]();
  }
}
