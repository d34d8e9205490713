/** Decides from the state what a command leads to. Changes nothing. */
import { unreachable } from "#base/assert.ts";
import type { Command } from "#kernel/model/command.ts";
import {
  decideCancel,
  decideDrain,
  decideForget,
  decideLend,
  decideResume,
  decideSetTenant,
  decideTakeOver,
  decideTakeQuota,
} from "./admin.ts";
import { decideCheckpoint, decideRelease } from "./checkpoint.ts";
import { decideRenew, decideReport, decideStart } from "./claim.ts";
import { decideCommit, decideFail } from "./finish.ts";
import { decideInvalidate } from "./invalidate.ts";
import { decideNotified } from "./notice.ts";
import { decidePublished, decideRecordManifest } from "./publish.ts";
import { decideRecordPlan, decideSignal } from "./plan.ts";
import { decideLeave, decideSubmit } from "./submit.ts";
import { type Decision, reject } from "./decision.ts";
import type { State } from "#kernel/model/state.ts";

/** Commands that are decided in one step. `reserve` and `tick` take several: see step.ts. */
export type SingleCommand = Exclude<Command, { kind: "reserve" | "tick" }>;

export function decide(state: State, command: SingleCommand, nowMs: number): Decision {
  switch (command.kind) {
    case "submit":
      return decideSubmit(state, command, nowMs);
    case "leave":
      return decideLeave(state, command, nowMs);
    case "cancel":
      return decideCancel(state, command, nowMs);
    case "signal":
      return decideSignal(state, command, nowMs);
    case "start":
      return decideStart(state, command, nowMs);
    case "renew":
      return decideRenew(state, command, nowMs);
    case "report":
      return decideReport(state, command, nowMs);
    case "commit":
      return decideCommit(state, command, nowMs);
    case "record-plan":
      return decideRecordPlan(state, command, nowMs);
    case "fail":
      return decideFail(state, command, nowMs);
    case "checkpoint":
      return decideCheckpoint(state, command, nowMs);
    case "release":
      return decideRelease(state, command, nowMs);
    case "invalidate":
      return decideInvalidate(state, command, nowMs);
    case "drain":
      return decideDrain(state, command);
    case "resume":
      return decideResume(state, command);
    case "set-tenant":
      return decideSetTenant(state, command);
    case "lend-quota":
      return decideLend(state, command, nowMs);
    case "take-quota":
      return decideTakeQuota(state, command, nowMs);
    case "published":
      return decidePublished(state, command, nowMs);
    case "record-manifest":
      return decideRecordManifest(state, command, nowMs);
    case "notified":
      return decideNotified(state, command, nowMs);
    case "forget":
      return decideForget(state, command);
    case "take-over":
      return decideTakeOver(state, command, nowMs);
    default:
      return unknown(command);
  }
}

function unknown(command: never): Decision {
  const { kind } = command as { kind?: unknown };
  if (typeof kind === "string") return reject({ kind: "invalid", path: "kind", why: "no such command" });
  return unreachable(command);
}
