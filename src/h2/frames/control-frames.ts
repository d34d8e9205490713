/** The frames that a connection sends by itself: preface and SETTINGS, PING, GOAWAY. */
import { clientPreface, frameType, setting, windowBytesDefault, writeUint32 } from "./frame.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import type { Sender } from "#h2/connection/sender.ts";

/** The last byte of our PINGs says what they were for. */
export const pingPurpose = { keepalive: 1, drain: 2 } as const;

/** The preface, SETTINGS, and the WINDOW_UPDATE that raises the connection's window above the default. */
export function layGreeting(
  sender: Sender,
  limits: H2Limits,
  who: { readonly isServer: boolean; readonly takesProtocols: boolean },
  windowBytes: number,
): void {
  const { output } = sender;
  const { isServer, takesProtocols } = who;
  if (!isServer) {
    output.reserve(clientPreface.length);
    output.buffer.set(clientPreface, output.end);
    output.end += clientPreface.length;
  }
  const settings: readonly (readonly [number, number])[] = [
    [setting.headerTableSize, limits.headerTableBytesMax],
    isServer ? [setting.maxConcurrentStreams, limits.streamsMax] : [setting.enablePush, 0],
    [setting.initialWindowSize, limits.streamWindowBytes],
    [setting.maxFrameSize, limits.frameBytesMax],
    [setting.maxHeaderListSize, limits.headerListBytesMax],
    ...(takesProtocols ? [[setting.enableConnectProtocol, 1] as const] : []),
  ];
  let at = sender.layControl(frameType.settings, 0, 0, settings.length * 6);
  for (const [id, value] of settings) {
    output.buffer[at] = 0;
    output.buffer[at + 1] = id;
    writeUint32(output.buffer, at + 2, value);
    at += 6;
  }
  const more = windowBytes - windowBytesDefault;
  if (more > 0) sender.layNumber(frameType.windowUpdate, 0, more);
}

export function layPing(sender: Sender, purpose: number): void {
  const at = sender.layControl(frameType.ping, 0, 0, 8);
  sender.output.buffer.fill(0, at, at + 7);
  sender.output.buffer[at + 7] = purpose;
}

export function layGoaway(sender: Sender, lastId: number, code: number, why: string): void {
  const text = Buffer.from(why.slice(0, 200), "latin1");
  const at = sender.layControl(frameType.goaway, 0, 0, 8 + text.length);
  const { buffer } = sender.output;
  writeUint32(buffer, at, lastId);
  writeUint32(buffer, at + 4, code);
  buffer.set(text, at + 8);
}
