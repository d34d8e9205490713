/** What hostile peers send over real sockets, for tests and benchmarks: each goes on until the server disconnects. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { clientPreface, flag, frameType } from "#h2/frames/frame.ts";
import { data, frame, ping, priority, request, Rig, rst, settings, settingsAck, windowUpdate } from "./rig.ts";

const hello = Buffer.concat([clientPreface, settings(), settingsAck]);

/** What is sent again and again; `turn` counts from 0. */
export type Attack = (rig: Rig, turn: number) => Buffer;
const id = (turn: number): number => turn * 2 + 1;

export const attacks: Readonly<Record<string, Attack>> = {
  "rapid reset": (rig, turn) => Buffer.concat([rig.headers(id(turn)), rst(id(turn))]),
  "malformed requests": (rig, turn) => rig.headers(id(turn), [["x", "1"]]),
  "SETTINGS flood": () => settings([[4, 1]]),
  "PING flood": () => ping(),
  "PRIORITY flood": () => priority(99),
  "empty DATA": (rig, turn) => (turn === 0 ? rig.headers(1) : data(1, "")),
  "CONTINUATION flood": (rig, turn) =>
    turn === 0 ? rig.headers(1, request, 0) : frame(frameType.continuation, 0, 1, Buffer.alloc(1_000, 0x82)),
  "window updates by one": () => windowUpdate(0, 1),
  "header bombs": (_rig, turn) => {
    const bomb = Buffer.concat([
      Buffer.from("4001617fa11e", "hex"),
      Buffer.alloc(4_000, "x"),
      Buffer.alloc(8_000, 0xbe),
    ]);
    return frame(frameType.headers, flag.endHeaders, id(turn), bomb);
  },
};

const turnsMax = 1_000_000;
const turnsAtOnce = 100;

/**
 * Goes on until the server disconnects. Returns how many frames, or groups of frames, it sent, and whether the server
 * did.
 */
export async function attackOnce(
  host: string,
  port: number,
  next: Attack,
): Promise<{ readonly turns: number; readonly sentAway: boolean }> {
  const socket: Socket = connect(port, host);
  socket.on("error", () => {});
  socket.resume();
  socket.write(hello);
  const rig = new Rig();
  let turn = 0;
  for (; !socket.closed && turn < turnsMax; turn += turnsAtOnce) {
    const from = turn;
    const frames = Array.from({ length: turnsAtOnce }, (_, at) => next(rig, from + at));
    if (socket.writable && !socket.write(Buffer.concat(frames)))
      await Promise.race([once(socket, "drain"), once(socket, "close")]);
    else await new Promise((soon) => setImmediate(soon));
  }
  const sentAway = socket.closed;
  socket.destroy();
  return { turns: turn, sentAway };
}
