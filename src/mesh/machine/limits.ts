/** What is held for others is bounded here; the protocol's own sizes are here as well. */

/** Memberlist's limit on what a node says of itself. */
export const metaBytesMax = 512;
export const labelBytesMax = 255;
export const nameBytesMax = 256;

/** What we put into one packet: fits an Ethernet frame with room for tunnels, as memberlist's default does. */
export const packetSendBytesMax = 1_400;

export type MeshLimits = {
  /** What one packet may become when it is decompressed. */
  readonly packetInflatedBytesMax: number;
  /** Messages in one packet, nested ones counted. */
  readonly packetMessagesMax: number;
  /** One stream, on the wire and again decompressed. */
  readonly streamBytesMax: number;
  readonly membersMax: number;
  /** Members that failed or left, remembered for people and for reconnecting. */
  readonly departedMax: number;
  /** Messages of users and of serf that wait to be passed on. */
  readonly passedOnMax: number;
  /** Pings that we made for others and that have not come back. */
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
