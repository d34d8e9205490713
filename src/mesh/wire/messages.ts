/**
 * Memberlist's messages as types, and their bytes. A message is one byte for its kind and a MessagePack map with the
 * field names of memberlist's Go structs, in the order in which Go writes them.
 */
import { Fault } from "#base/fault.ts";
import { ipBytes, type Address } from "#mesh/address.ts";
import { Fields } from "./fields.ts";
import { MsgpackReader, whole } from "./msgpack-reader.ts";
import { joined, pack, type Packable } from "./msgpack-writer.ts";

/** The first byte of a message. */
export const messageCode = {
  ping: 0,
  indirectPing: 1,
  ack: 2,
  suspect: 3,
  alive: 4,
  dead: 5,
  pushPull: 6,
  compound: 7,
  user: 8,
  compress: 9,
  encrypt: 10,
  nack: 11,
  crc: 12,
  error: 13,
  label: 244,
} as const;

/** Protocol and delegate versions: lowest and highest understood, and the one spoken. */
export type Versions = readonly [pmin: number, pmax: number, pcur: number, dmin: number, dmax: number, dcur: number];

/** Where to send the answer, if not to the packet's origin. */
export type Source = { readonly address?: Address | undefined; readonly node?: string | undefined };

export type Ping = { readonly kind: "ping"; readonly seqNo: number; readonly node: string; readonly source: Source };
export type IndirectPing = {
  readonly kind: "indirect-ping";
  readonly seqNo: number;
  readonly target: Address;
  readonly node: string;
  readonly wantsNack: boolean;
  readonly source: Source;
};
export type Ack = { readonly kind: "ack"; readonly seqNo: number };
export type Nack = { readonly kind: "nack"; readonly seqNo: number };
/** A member's message about another's fate; about itself, "dead" means that it leaves. */
export type Accusation = {
  readonly kind: "suspect" | "dead";
  readonly incarnation: number;
  readonly node: string;
  readonly from: string;
};
export type Alive = {
  readonly kind: "alive";
  readonly incarnation: number;
  readonly node: string;
  readonly address: Address;
  readonly meta: Uint8Array;
  readonly versions: Versions | undefined;
};
export type User = { readonly kind: "user"; readonly bytes: Uint8Array };

export type PacketMessage = Ping | IndirectPing | Ack | Nack | Accusation | Alive | User;

export const memberStateCodes = ["alive", "suspect", "dead", "left"] as const;
export type MemberState = (typeof memberStateCodes)[number];

/** A member as one node sees it, sent in a push/pull. */
export type PushedMember = {
  readonly name: string;
  readonly address: Address;
  readonly meta: Uint8Array;
  readonly incarnation: number;
  readonly state: MemberState;
  readonly versions: Versions | undefined;
};
export type PushPull = {
  readonly kind: "push-pull";
  readonly isJoin: boolean;
  readonly members: readonly PushedMember[];
  readonly userState: Uint8Array;
};
export type RemoteError = { readonly kind: "error"; readonly text: string };

export type StreamMessage = Ping | Ack | User | PushPull | RemoteError;

export function encodeMessage(message: Exclude<PacketMessage, User>): Uint8Array {
  switch (message.kind) {
    case "ping":
      return framed(messageCode.ping, { Node: message.node, SeqNo: message.seqNo, ...sourceFields(message.source) });
    case "indirect-ping":
      return framed(messageCode.indirectPing, {
        Nack: message.wantsNack,
        Node: message.node,
        Port: message.target.port,
        SeqNo: message.seqNo,
        ...sourceFields(message.source),
        Target: ipBytes(message.target.host),
      });
    case "ack":
      return framed(messageCode.ack, { Payload: null, SeqNo: message.seqNo });
    case "nack":
      return framed(messageCode.nack, { SeqNo: message.seqNo });
    case "suspect":
    case "dead":
      return framed(messageCode[message.kind], {
        From: message.from,
        Incarnation: message.incarnation,
        Node: message.node,
      });
    case "alive":
      return framed(messageCode.alive, {
        Addr: ipBytes(message.address.host),
        Incarnation: message.incarnation,
        Meta: message.meta,
        Node: message.node,
        Port: message.address.port,
        Vsn: message.versions ? Uint8Array.from(message.versions) : null,
      });
    default:
      return message satisfies never;
  }
}

export const encodeUser = (bytes: Uint8Array): Uint8Array => joined([Uint8Array.of(messageCode.user), bytes]);

/** A user message on a stream carries its length, because nothing else does. */
export const encodeUserStream = (bytes: Uint8Array): Uint8Array =>
  joined([framed(messageCode.user, { UserMsgLen: bytes.length }), bytes]);

export const encodeError = (text: string): Uint8Array => framed(messageCode.error, { Error: text });

export function encodePushPull({ isJoin, members, userState }: Omit<PushPull, "kind">): Uint8Array {
  const header = framed(messageCode.pushPull, { Join: isJoin, Nodes: members.length, UserStateLen: userState.length });
  return joined([header, ...members.map(packMember), userState]);
}

const packMember = (member: PushedMember): Uint8Array =>
  pack({
    Addr: ipBytes(member.address.host),
    Incarnation: member.incarnation,
    Meta: member.meta,
    Name: member.name,
    Port: member.address.port,
    State: memberStateCodes.indexOf(member.state),
    Vsn: member.versions ? Uint8Array.from(member.versions) : null,
  });

export function framed(code: number, fields: { readonly [field: string]: Packable | undefined }): Uint8Array {
  return joined([Uint8Array.of(code), pack(fields)]);
}

const sourceFields = ({ address, node }: Source) => ({
  SourceAddr: address && ipBytes(address.host),
  SourceNode: node,
  SourcePort: address?.port,
});

/** One message of a packet, with its kind in the first byte. Wrappers were removed before. */
export function decodeMessage(bytes: Uint8Array): PacketMessage {
  const code = bytes[0];
  if (code === messageCode.user) return { kind: "user", bytes: bytes.subarray(1) };
  const fields = new Fields(whole(() => new MsgpackReader(bytes, 1).map()));
  switch (code) {
    case messageCode.ping:
      return readPing(fields);
    case messageCode.indirectPing:
      return {
        kind: "indirect-ping",
        seqNo: fields.uint32("SeqNo"),
        target: fields.address("Target", "Port"),
        node: fields.name("Node"),
        wantsNack: fields.flag("Nack"),
        source: readSource(fields),
      };
    case messageCode.ack:
      return { kind: "ack", seqNo: fields.uint32("SeqNo") };
    case messageCode.nack:
      return { kind: "nack", seqNo: fields.uint32("SeqNo") };
    case messageCode.suspect:
    case messageCode.dead:
      return {
        kind: code === messageCode.dead ? "dead" : "suspect",
        incarnation: fields.uint32("Incarnation"),
        node: fields.name("Node"),
        from: fields.name("From"),
      };
    case messageCode.alive:
      return {
        kind: "alive",
        incarnation: fields.uint32("Incarnation"),
        node: fields.name("Node"),
        address: fields.address("Addr", "Port"),
        meta: fields.meta("Meta"),
        versions: fields.versions("Vsn"),
      };
    default:
      throw new Fault("invalid", "read a message", { code, why: "its kind is unknown" });
  }
}

export const readPing = (fields: Fields): Ping => ({
  kind: "ping",
  seqNo: fields.uint32("SeqNo"),
  node: fields.text("Node"),
  source: readSource(fields),
});

/** An unusable source is ignored: the packet's own origin is used then. */
function readSource(fields: Fields): Source {
  const address = fields.optionalAddress("SourceAddr", "SourcePort");
  const node = fields.text("SourceNode");
  return { ...(address && { address }), ...(node !== "" && { node }) };
}

export const readMember = (fields: Fields): PushedMember => ({
  name: fields.name("Name"),
  address: fields.address("Addr", "Port"),
  meta: fields.meta("Meta"),
  incarnation: fields.uint32("Incarnation"),
  state: memberStateCodes[fields.uint32("State")] ?? "dead",
  versions: fields.versions("Vsn"),
});
