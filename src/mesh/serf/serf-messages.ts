/** The messages of serf agents inside memberlist's user messages, as far as we need them. */
import { Fault } from "#base/fault.ts";
import { Fields } from "#mesh/wire/fields.ts";
import { framed } from "#mesh/wire/messages.ts";
import { MsgpackReader, textOf, whole, type Packed, type PackedMap } from "#mesh/wire/msgpack-reader.ts";
import type { Packable } from "#mesh/wire/msgpack-writer.ts";

export const serfCode = {
  leave: 0,
  join: 1,
  pushPull: 2,
  userEvent: 3,
  query: 4,
  queryResponse: 5,
  conflictResponse: 6,
  keyRequest: 7,
  keyResponse: 8,
  relay: 9,
} as const;

/** A member joined or leaves, at a logical time. */
export type Intent = {
  readonly kind: "join" | "leave";
  readonly time: number;
  readonly node: string;
};

export type SerfState = {
  readonly time: number;
  readonly eventTime: number;
  readonly queryTime: number;
  readonly statusTimes: ReadonlyMap<string, number>;
  readonly left: readonly string[];
};

export const encodeIntent = ({ kind, time, node }: Intent): Uint8Array =>
  framed(serfCode[kind], { LTime: time, Node: node, ...(kind === "leave" && { Prune: false }) });

export function readFields(message: Uint8Array): PackedMap {
  return whole(() => new MsgpackReader(message, 1).map());
}

/** Refuses an absurdly large logical time: it would stop the clock of every node that accepts it. */
export function lamportIn(fields: Fields, field: string): number {
  const time = fields.lamport(field);
  if (time === undefined || time > lamportMax) throw new Fault("invalid", "read serf's message", { field });
  return time;
}

const lamportMax = 2 ** 48;

export function encodeSerfState(state: SerfState): Uint8Array {
  const statusTimes: Record<string, Packable> = Object.fromEntries(state.statusTimes);
  return framed(serfCode.pushPull, {
    EventLTime: state.eventTime,
    Events: [],
    LTime: state.time,
    LeftMembers: state.left,
    QueryLTime: state.queryTime,
    StatusLTimes: statusTimes,
  });
}

export function decodeSerfState(bytes: Uint8Array): SerfState {
  if (bytes[0] !== serfCode.pushPull) throw new Fault("invalid", "read serf's state", { code: bytes[0] });
  const fields = new Fields(readFields(bytes));
  const times = fields.value("StatusLTimes");
  const left = fields.value("LeftMembers");
  return {
    time: lamportIn(fields, "LTime"),
    eventTime: lamportIn(fields, "EventLTime"),
    queryTime: lamportIn(fields, "QueryLTime"),
    statusTimes: times instanceof Map ? onlyTimes(times) : new Map(),
    left: Array.isArray(left) ? (left as readonly Packed[]).flatMap((name) => asText(name)) : [],
  };
}

const onlyTimes = (times: PackedMap): ReadonlyMap<string, number> =>
  new Map(
    [...times].flatMap(([name, time]) =>
      typeof time === "number" && time >= 0 && time <= lamportMax ? [[name, time]] : [],
    ),
  );

const asText = (value: Packed): readonly string[] => (value instanceof Uint8Array ? [textOf(value)] : []);
