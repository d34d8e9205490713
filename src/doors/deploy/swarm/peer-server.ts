/** Serves this machine's units to others, over TLS with the keys that the node gave out. */
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { AddressInfo } from "node:net";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import { Uploads, type Caps, type UploadEffect, type UploadEvent, type UploadFlow } from "#swarm/uploads.ts";
import { keyFor, peerTls, type MachineSecret, type Ticket } from "./tickets.ts";
import type { UnitFiles } from "./unit-files.ts";
import { Frames, messageFrame, unitHead, type PeerMessage } from "./wire.ts";

type Connection = { readonly socket: TLSSocket; readonly from: string; readonly distance: Ticket["distance"] };

export type PeerServerPorts = {
  readonly machine: string;
  readonly nowMs: () => number;
  readonly log: (line: string) => void;
  /** A goal that a peer passes on. */
  readonly goal: (signed: Signed) => void;
  /** The goals that halt something here. */
  readonly halts?: (() => readonly Signed[]) | undefined;
  /** For tests of liars: what is sent instead of a unit's bytes. */
  readonly disturb?: ((bytes: Buffer, unit: number) => Buffer) | undefined;
};

const connectionsMax = 2_000;
const idleMs = 120_000;

export class PeerServer implements AsyncDisposable {
  readonly #ports: PeerServerPorts;
  readonly #uploads: Uploads<Connection>;
  readonly #files = new Map<string, UnitFiles>();
  readonly #connections = new Set<Connection>();
  #secrets: MachineSecret[] = [];
  #server: Server | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sentBytes = 0;

  constructor(ports: PeerServerPorts, caps: Caps) {
    this.#ports = ports;
    this.#uploads = new Uploads(caps, ports.nowMs());
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Answers with the port. */
  async listen(host: string, port: number): Promise<number> {
    const callers = new WeakMap<TLSSocket, { from: string; distance: Ticket["distance"] }>();
    const server = createServer({
      ...peerTls,
      pskCallback: (socket, identity) => {
        const found = keyFor(identity, this.#ports.machine, this.#secrets);
        if (!found) return null;
        callers.set(socket, found);
        return found.key;
      },
    });
    server.maxConnections = connectionsMax;
    server.on("secureConnection", (socket) => {
      const caller = callers.get(socket);
      if (caller) this.#serve({ socket, ...caller });
      else socket.destroy();
    });
    server.on("tlsClientError", (error) => this.#ports.log(`peer refused: ${error.message}`));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
    this.#server = server;
    return (server.address() as AddressInfo).port;
  }

  /** Secrets of earlier epochs count for tickets that were given out before. */
  know(secret: MachineSecret): void {
    if (this.#secrets.some(({ epoch }) => epoch === secret.epoch)) return;
    this.#secrets = [secret, ...this.#secrets].slice(0, 3);
  }

  serve(content: string, files: UnitFiles): void {
    this.#files.set(content, files);
    this.#step({ kind: "serve", content, have: files.have, unitBytes: files.layout.unitBytes });
  }

  withdraw(content: string): void {
    this.#files.delete(content);
    this.#step({ kind: "withdraw", content });
  }

  arrived(content: string, unit: number): void {
    this.#step({ kind: "arrived", content, unit });
  }

  setCaps(caps: Caps): void {
    this.#step({ kind: "caps", caps });
  }

  /** To all that fetch from here: a halt must not depend on a node. */
  tell(message: PeerMessage): void {
    const frame = messageFrame(message);
    for (const { socket } of this.#connections) socket.write(frame);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    for (const { socket } of this.#connections) socket.destroy();
    const server = this.#server;
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  #serve(connection: Connection): void {
    const { socket, distance } = connection;
    const frames = new Frames({ takesUnits: false });
    this.#connections.add(connection);
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("error", () => undefined); // "close" follows
    socket.on("close", () => {
      this.#connections.delete(connection);
      this.#step({ kind: "left", peer: connection });
    });
    socket.on("data", (part: Buffer) => {
      try {
        for (const message of frames.take(part)) {
          if (message.kind === "subscribe") this.#step({ ...message, peer: connection, distance });
          else if (message.kind === "shorten" || message.kind === "query") this.#step({ ...message, peer: connection });
          else if (message.kind === "goal") this.#ports.goal(message.signed as Signed);
          else if (message.kind === "halts")
            for (const signed of this.#ports.halts?.() ?? []) socket.write(messageFrame({ kind: "goal", signed }));
        }
      } catch (error) {
        this.#ports.log(`peer ${connection.from}: ${(error as Error).message}`);
        socket.destroy();
      }
    });
  }

  #step(event: UploadEvent<Connection>): void {
    const effects: UploadEffect<Connection>[] = [];
    const nowMs = this.#ports.nowMs();
    this.#uploads.step(event, nowMs, effects);
    for (const effect of effects) {
      if (effect.kind === "send") void this.#send(effect.flow, effect.unit);
      else if (effect.kind === "wake") this.#wakeAt(effect.atMs - nowMs);
      else {
        const { peer, ...message } = effect;
        peer.socket.write(messageFrame(message));
      }
    }
  }

  #wakeAt(inMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#step({ kind: "wake" }), Math.max(1, Math.ceil(inMs)));
  }

  async #send(flow: UploadFlow<Connection>, unit: number): Promise<void> {
    const { socket } = flow.peer;
    const right = await this.#files
      .get(flow.content)
      ?.read(unit)
      .catch(() => undefined);
    if (!right || socket.destroyed) {
      // What the disk has is no longer the unit (UF3), or the peer has gone.
      socket.destroy();
      return;
    }
    const bytes = this.#ports.disturb?.(right, unit) ?? right;
    this.#sentBytes += bytes.length;
    socket.write(unitHead(flow.id, unit, bytes.length));
    socket.write(bytes, () => this.#step({ kind: "drained", flow }));
  }
}
