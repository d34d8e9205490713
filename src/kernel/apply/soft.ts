/** State changes that are not logged: a new owner starts without them. */
import { unreachable } from "#base/assert.ts";
import { forgetKey, isSameList } from "./job.ts";
import { refreshLeases } from "./apply.ts";
import type { SoftEvent } from "#kernel/model/event.ts";
import { checkQuota, limitAtMsOf } from "./moves.ts";
import type { State } from "#kernel/model/state.ts";

const none: readonly string[] = [];

export function applySoft(state: State, event: SoftEvent): void {
  switch (event.kind) {
    case "renewed": {
      const executor = state.executor(event.executor);
      executor.seenAtMs = event.at;
      for (const { token, number } of event.heard ?? []) {
        const claim = executor.claims.get(token);
        if (claim) claim.heard = number;
      }
      for (const claim of executor.claims.values()) {
        // K9: renewals stop counting at the attempt's time limit. Otherwise an executor that renews for ever would keep
        // its job alive for ever.
        const isRenewed = !claim.void || event.silent.includes(claim.token);
        if (isRenewed && event.at < limitAtMsOf(claim)) claim.expiresAtMs = event.at + claim.leaseMs;
      }
      return;
    }
    case "executor-seen": {
      const executor = state.executor(event.executor);
      executor.seenAtMs = event.at;
      // Most executors offer the same labels as before; then their memory estimate stays the same too.
      const isSame = executor.tenant === event.tenant && isSameList(executor.offers ?? none, event.offers);
      executor.offers = event.offers;
      executor.tenant = event.tenant;
      if (!isSame) state.weighExecutor(executor);
      state.agenda.file(executor, event.at + state.limits.executorFadeMs, state.nowMs);
      return;
    }
    case "keys-let-go": {
      let left = event.count;
      for (const key of state.keys.keys()) {
        if (left === 0) break;
        left -= 1;
        forgetKey(state, key);
      }
      state.keysElsewhereUntilMs = Math.max(state.keysElsewhereUntilMs, event.elsewhereUntilMs);
      return;
    }
    case "executors-faded":
      for (const id of event.executors) {
        state.weigh(-state.executor(id).bytes);
        state.executors.delete(id);
      }
      return;
    case "quota-passed":
      return checkQuota(state, state.tenant(event.tenant));
    case "passed":
      state.nowMs = Math.max(state.nowMs, event.at);
      return;
    case "slept":
      state.nowMs = Math.max(state.nowMs, event.at);
      return refreshLeases(state, event.at, event.forMs);
    default:
      return unreachable(event);
  }
}
