/**
 * Calls that wait for work would delay a node that stops, which could not renew claims meanwhile. They are aborted at
 * once, and their callers ask again elsewhere or later.
 */
import { UntilLeaving } from "#base/calls/until-leaving.ts";
import type { ShardRequest, ShardResponse, ShardService } from "#shard/transport/protocol.ts";

/**
 * The caller must abort its own signal when it is refused, as the end of a call does: until then the shard keeps
 * holding the request. A combined signal, `AbortSignal.any`, would cost more than the rest of such a call.
 */
export function untilLeaving(service: ShardService, leaving: AbortSignal): ShardService {
  const held = new Set<(why: unknown) => void>();
  const letGo = (): void => {
    for (const refuse of held) refuse(leaving.reason);
    held.clear();
  };
  leaving.addEventListener("abort", letGo, { once: true });
  const watches = new UntilLeaving(leaving);

  return {
    request(request, signal) {
      if (!isHeld(request)) return service.request(request, signal);
      if (leaving.aborted) return Promise.reject(leaving.reason as Error);
      return new Promise<ShardResponse>((resolve, reject) => {
        held.add(reject);
        service.request(request, signal).then(
          (response) => {
            held.delete(reject);
            resolve(response);
          },
          (error: Error) => {
            held.delete(reject);
            reject(error);
          },
        );
      });
    },
    async *watch(request, signal) {
      using watch = watches.hold(signal);
      yield* service.watch(request, watch.signal);
    },
  };
}

const isHeld = (request: ShardRequest): boolean => request.kind === "command" && Boolean(request.waitMs);
