/** The state that the parts of the protocol machine share. Nothing here touches a socket or a clock. */
import type { Random } from "#base/random.ts";
import type { Address } from "#mesh/address.ts";
import type { Broadcasts } from "./broadcasts.ts";
import type { Envelope } from "#mesh/wire/envelope.ts";
import type { Health } from "./health.ts";
import type { MeshLimits } from "./limits.ts";
import type { MemberState, Versions } from "#mesh/wire/messages.ts";
import type { MeshTimes } from "./profile.ts";
import type { Member, Roster } from "./roster.ts";
import type { Timers } from "./timers.ts";

/** A member as others see it. */
export type MemberView = {
  readonly name: string;
  readonly address: Address;
  readonly state: MemberState;
  readonly incarnation: number;
  /** Serf's tags; empty for a member that is neither Millrace's nor serf's. */
  readonly tags: Readonly<Record<string, string>>;
  readonly versions: Versions | undefined;
  /** How long it has been in this state. */
  readonly sinceMs: number;
  readonly isSelf: boolean;
};

export type MeshEvent =
  | { readonly kind: "join" | "leave" | "fail" | "update"; readonly member: MemberView }
  | { readonly kind: "user"; readonly from: string; readonly bytes: Uint8Array }
  | { readonly kind: "conflict"; readonly name: string; readonly ours: Address; readonly theirs: Address };

/** What the caller must do. */
export type Effect =
  | { readonly kind: "send"; readonly to: Address; readonly bytes: Uint8Array }
  | {
      /** Opens a stream, writes the bytes and, if an answer is expected, reads one message. */
      readonly kind: "dial";
      readonly id: number;
      readonly to: Address;
      readonly bytes: Uint8Array;
      readonly wantsAnswer: boolean;
      readonly withinMs: number;
    }
  | { readonly kind: "tell"; readonly event: MeshEvent }
  | { readonly kind: "joined"; readonly id: number; readonly why: string | undefined }
  | { readonly kind: "sent"; readonly id: number; readonly why: string | undefined }
  | { readonly kind: "left" };

export type MeshCounts = {
  packetsRefused: number;
  messagesRefused: number;
  membersRefused: number;
  probes: number;
  probesFailed: number;
  /** Answered over TCP only: UDP packets are lost or blocked. */
  probesByStream: number;
  suspicions: number;
  /** Suspicions that were disproved, by the suspect itself or by an answer. */
  suspicionsFalse: number;
  deaths: number;
  refutations: number;
  pushPulls: number;
  pushPullsFailed: number;
  /** How often the process did not run for longer than the protocol's intervals; pending probes were restarted then. */
  stalls: number;
};

export type Core = {
  readonly name: string;
  readonly times: MeshTimes;
  readonly limits: MeshLimits;
  readonly random: Random;
  readonly roster: Roster;
  readonly timers: Timers;
  readonly health: Health;
  readonly envelope: Envelope;
  /** Messages about members. */
  readonly news: Broadcasts;
  /** Serf messages to pass on. */
  readonly passedOn: Broadcasts;
  readonly counts: MeshCounts;
  readonly self: Member;
  /** True from when the node intends to leave. */
  readonly isLeaving: () => boolean;
  /** True from when the leave is announced to the members. */
  readonly hasLeft: () => boolean;
  readonly nowMs: () => number;
  readonly effect: (effect: Effect) => void;
  readonly tell: (kind: "join" | "leave" | "fail" | "update", member: Member) => void;
  readonly nextId: () => number;
};

export const noCounts = (): MeshCounts => ({
  packetsRefused: 0,
  messagesRefused: 0,
  membersRefused: 0,
  probes: 0,
  probesFailed: 0,
  probesByStream: 0,
  suspicions: 0,
  suspicionsFalse: 0,
  deaths: 0,
  refutations: 0,
  pushPulls: 0,
  pushPullsFailed: 0,
  stalls: 0,
});

/** Runs repeatedly; `delayMs` returns the delay before each run. */
export function every(core: Core, firstMs: number, delayMs: () => number, run: () => void): void {
  core.timers.set(core.nowMs() + firstMs, () => {
    run();
    every(core, delayMs(), delayMs, run);
  });
}
