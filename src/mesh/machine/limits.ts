/** Bounds on what is held for others, and the protocol's own sizes. */

/** Memberlist's limit on a node's metadata. */
export const metaBytesMax = 512;
export const labelBytesMax = 255;
export const nameBytesMax = 256;

/** The largest packet that we send: fits an Ethernet frame with space for tunnels, like memberlist's default. */
export const packetSendBytesMax = 1_400;

export type MeshLimits = {
  /** The largest size of a packet when it is decompressed. */
  readonly packetInflatedBytesMax: number;
  /** Messages in one packet, including nested ones. */
  readonly packetMessagesMax: number;
  /** Size of one stream, on the wire and again decompressed. */
  readonly streamBytesMax: number;
  readonly membersMax: number;
  /** Members that failed or left, remembered for people and for reconnecting. */
  readonly departedMax: number;
  /** User and serf messages that wait to be passed on. */
  readonly passedOnMax: number;
  /** Pings that we sent for others and that were not answered yet. */
  readonly relayedMax: number;
  readonly userMessageBytesMax: number;
};

export const limitsDefault: MeshLimits = {
  packetInflatedBytesMax: 128 * 1024,
  packetMessagesMax: 512,
  streamBytesMax: 8 * 1024 * 1024,
  membersMax: 5_000,
  departedMax: 1_000,
  passedOnMax: 1_000,
  relayedMax: 1_000,
  userMessageBytesMax: 256 * 1024,
};
