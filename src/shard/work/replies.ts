/** Replies to commands as responses of the work protocol, and back. */
import type { Replies } from "#kernel/model/reply.ts";
import type { Stamp } from "#shard/transport/protocol.ts";
import type { ClientKind, ResponseOf } from "./commands.ts";
import { readGrant, readHeld, writeGrant, writeHeld } from "./model.ts";
import { jobPhases, noSuch, planKinds } from "./enums.ts";

type Entry<K extends ClientKind> = {
  /** The sender adds the stamp. */
  readonly write: (reply: Replies[K]) => Omit<ResponseOf<K>, "stamp">;
  readonly read: (response: ResponseOf<K>) => Replies[K];
};

const readSubmitted = ({ job, created, merged, number }: ResponseOf<"submit">): Replies["submit"] =>
  number === undefined ? { job, created, merged } : { job, created, merged, number };

export const replyTable: { readonly [K in ClientKind]: Entry<K> } = {
  submit: { write: (reply) => reply, read: readSubmitted },
  leave: { write: (reply) => reply, read: ({ left }) => ({ left }) },
  cancel: {
    write: ({ phase }) => ({ phase: jobPhases.numberOf(phase) }),
    read: ({ phase }) => ({ phase: jobPhases.wordOf(phase) ?? noSuch("phase") }),
  },
  signal: { write: (reply) => reply, read: ({ recorded }) => ({ recorded }) },
  reserve: {
    write: ({ grants }) => ({ grants: grants.map(writeGrant) }),
    read: ({ grants }) => ({ grants: grants.map(readGrant) }),
  },
  start: { write: (reply) => reply, read: ({ leaseMs }) => ({ leaseMs }) },
  renew: {
    write: ({ held, lost }) => ({ held: held.map(writeHeld), lost }),
    read: ({ held, lost }) => ({ held: held.map(readHeld), lost: lost.map(({ task, token }) => ({ task, token })) }),
  },
  report: { write: (reply) => reply, read: ({ steps }) => ({ steps }) },
  commit: { write: (reply) => reply, read: ({ committed, generation }) => ({ committed, generation }) },
  "record-plan": {
    write: ({ recorded, plan }) => ({ recorded, plan: planKinds.numberOf(plan) }),
    read: ({ recorded, plan }) => ({ recorded, plan: planKinds.wordOf(plan) ?? noSuch("plan") }),
  },
  fail: { write: (reply) => reply, read: ({ retryInMs }) => ({ retryInMs }) },
  checkpoint: { write: (reply) => reply, read: ({ recorded }) => ({ recorded }) },
  release: { write: (reply) => reply, read: ({ released }) => ({ released }) },
  invalidate: { write: (reply) => reply, read: ({ generation }) => ({ generation }) },
  drain: { write: (reply) => reply, read: ({ draining }) => ({ draining }) },
  resume: { write: (reply) => reply, read: ({ resumed }) => ({ resumed }) },
  "set-tenant": { write: (reply) => reply, read: ({ changed }) => ({ changed }) },
  "lend-quota": { write: (reply) => reply, read: ({ slots, forMs, slice }) => ({ slots, forMs, slice }) },
};

/** A message without a stamp counts as older than any with one. */
export const readStamp = (stamp: Stamp | undefined): Stamp => stamp ?? { epoch: 0, seq: 0 };
