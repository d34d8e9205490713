/** The settings that a peer announces (RFC 9113 section 6.5.2). If a setting comes twice the last one counts. */
import { ConnectionError, errorCode } from "#h2/frames/error-codes.ts";
import { frameBytesDefault, frameBytesLimit, readUint32, setting, windowBytesLimit } from "#h2/frames/frame.ts";

/** A setting that the frame does not contain is undefined and stays as it was. Unknown settings are ignored. */
export type PeerSettings = {
  headerTableSize: number | undefined;
  maxConcurrentStreams: number | undefined;
  initialWindowSize: number | undefined;
  maxFrameSize: number | undefined;
  maxHeaderListSize: number | undefined;
};

export function readPeerSettings(bytes: Buffer, at: number, end: number, fromClient: boolean): PeerSettings {
  const found: PeerSettings = {
    headerTableSize: undefined,
    maxConcurrentStreams: undefined,
    initialWindowSize: undefined,
    maxFrameSize: undefined,
    maxHeaderListSize: undefined,
  };
  for (; at < end; at += 6) {
    const id = (bytes[at]! << 8) | bytes[at + 1]!;
    const value = readUint32(bytes, at + 2);
    if (id === setting.headerTableSize) found.headerTableSize = value;
    else if (id === setting.enablePush) checkPush(value, fromClient);
    else if (id === setting.maxConcurrentStreams) found.maxConcurrentStreams = value;
    else if (id === setting.initialWindowSize) {
      if (value > windowBytesLimit)
        throw new ConnectionError(errorCode.flowControlError, "an initial window that is too large");
      found.initialWindowSize = value;
    } else if (id === setting.maxFrameSize) {
      if (value < frameBytesDefault || value > frameBytesLimit)
        throw new ConnectionError(errorCode.protocolError, `a maximum frame size of ${value}`);
      found.maxFrameSize = value;
    } else if (id === setting.maxHeaderListSize) found.maxHeaderListSize = value;
  }
  return found;
}

/** A server may only say that it does not push (RFC 9113 section 6.5.2). */
function checkPush(value: number, fromClient: boolean): void {
  if (value > 1 || (value === 1 && !fromClient))
    throw new ConnectionError(errorCode.protocolError, `ENABLE_PUSH is ${value}`);
}
