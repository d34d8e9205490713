/** The constants of RFC 9113 sections 3.4, 4.1, 6 and 6.5.2, and how a frame's first nine bytes are written. */
export const frameType = {
  data: 0x0,
  headers: 0x1,
  priority: 0x2,
  rstStream: 0x3,
  settings: 0x4,
  pushPromise: 0x5,
  ping: 0x6,
  goaway: 0x7,
  windowUpdate: 0x8,
  continuation: 0x9,
} as const;

export const flag = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const setting = {
  headerTableSize: 0x1,
  enablePush: 0x2,
  maxConcurrentStreams: 0x3,
  initialWindowSize: 0x4,
  maxFrameSize: 0x5,
  maxHeaderListSize: 0x6,
  /** RFC 8441: the server takes CONNECT with a :protocol. */
  enableConnectProtocol: 0x8,
} as const;

export const clientPreface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export const frameHeaderBytes = 9;
export const frameBytesDefault = 16_384;
export const frameBytesLimit = 16_777_215;
export const windowBytesDefault = 65_535;
export const windowBytesLimit = 0x7fffffff;
export const streamIdLimit = 0x7fffffff;

export function writeFrameHeader(
  target: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  target[at] = length >>> 16;
  target[at + 1] = length >>> 8;
  target[at + 2] = length;
  target[at + 3] = type;
  target[at + 4] = flags;
  writeUint32(target, at + 5, streamId);
}

export function writeUint32(target: Uint8Array, at: number, value: number): void {
  target[at] = value >>> 24;
  target[at + 1] = value >>> 16;
  target[at + 2] = value >>> 8;
  target[at + 3] = value;
}

export const readUint32 = (bytes: Uint8Array, at: number): number =>
  ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;

/** Stream ids, window increments: the highest bit is reserved and ignored. */
export const readUint31 = (bytes: Uint8Array, at: number): number => readUint32(bytes, at) & 0x7fffffff;
