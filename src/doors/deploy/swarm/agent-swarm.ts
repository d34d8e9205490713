/**
 * A machine's part in the spreading of releases: fetches units from the parents that its node names, and serves what it
 * has. Every decision is made by the machines of `#swarm`; here are sockets, the disk and the clock.
 */
import { connect, type TLSSocket } from "node:tls";
import { isFault } from "#base/fault.ts";
import type { Manifest } from "#doors/deploy/manifest/manifest.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import { Fetcher, type FetchEffect, type FetchEvent, type Flow, type Why } from "#swarm/fetcher.ts";
import { priorities, type Caps, type Priority } from "#swarm/uploads.ts";
import { strictest } from "./caps.ts";
import { PeerServer } from "./peer-server.ts";
import { peerTls, type MachineSecret, type Ticket } from "./tickets.ts";
import { readKept, writeKept } from "./kept-neighbours.ts";
import { UnitFiles } from "./unit-files.ts";
import { Frames, messageFrame, type PeerMessage, type UnitFrame } from "./wire.ts";

/** What the node answers. */
export type SwarmAnswer = {
  readonly secret: MachineSecret;
  readonly origin: string;
  /** Others found wrong bytes of this machine: none will give it any. */
  readonly isBanned: boolean;
  readonly parents: readonly (Ticket | null)[];
  readonly caps: Caps;
};

export type SwarmQuestion =
  | {
      readonly kind: "join";
      readonly content: string;
      readonly units: number;
      readonly address: string;
      readonly rack: string;
    }
  | {
      readonly kind: "ask";
      readonly content: string;
      readonly stripe: number;
      readonly why: Why;
      readonly about?: string;
    }
  | { readonly kind: "complete"; readonly content: string }
  /** Of no release: names those whom a halt is passed on to. */
  | { readonly kind: "meet"; readonly address: string; readonly rack: string };

export type SwarmPorts = {
  readonly machine: string;
  readonly rack: string;
  /** Where others reach this machine: what it listens on. */
  readonly host: string;
  readonly port: number;
  readonly caps: Caps;
  readonly nowMs: () => number;
  readonly log: (line: string) => void;
  readonly ask: (question: SwarmQuestion) => Promise<SwarmAnswer>;
  readonly originUnits: (
    content: string,
    range: { readonly stripe: number; readonly from: number; readonly to: number; readonly priority: Priority },
    signal: AbortSignal,
  ) => AsyncIterable<{ readonly unit: number; readonly bytes: Buffer }>;
  readonly goal: (signed: Signed) => void;
  readonly halts?: (() => readonly Signed[]) | undefined;
  /** Where neighbours are kept, for halts while no node answers; left out: nowhere. */
  readonly folder?: string | undefined;
  readonly disturb?: ((bytes: Buffer, unit: number) => Buffer) | undefined;
};

export type FillWish = { readonly isRollback: boolean; readonly signal?: AbortSignal | undefined };

/** A release, or a pack. */
export type Spread = Pick<Manifest, "files" | "units">;

type Out = { readonly socket: TLSSocket; readonly frames: Frames };

type Fetching = {
  readonly content: string;
  readonly files: UnitFiles;
  readonly fetcher: Fetcher<string>;
  readonly priority: Priority;
  readonly tickets: Map<string, Ticket>;
  readonly outs: Map<string, Out>;
  readonly stop: AbortController;
  readonly done: PromiseWithResolvers<void>;
  lastMs: number;
  isBanned: boolean;
};

const tickMs = 250;
/** Without any unit for this long, the rest comes from the node as whole segments. */
const stuckMsMax = 60_000;
const connectMsMax = 3_000;
/** Machines that a halt is passed on to. */
const neighboursMax = 64;
const askedMax = 4;

export class AgentSwarm implements AsyncDisposable {
  readonly #ports: SwarmPorts;
  readonly #server: PeerServer;
  readonly #fetching = new Map<string, Fetching>();
  readonly #neighbours = new Map<string, Ticket>();
  #address = "";
  #origin = "";

  private constructor(ports: SwarmPorts) {
    this.#ports = ports;
    this.#server = new PeerServer(ports, ports.caps);
  }

  static async open(ports: SwarmPorts): Promise<AgentSwarm> {
    const swarm = new AgentSwarm(ports);
    const kept = ports.folder === undefined ? undefined : await readKept(ports.folder);
    if (kept) swarm.#server.know(kept.secret);
    for (const ticket of kept?.tickets ?? []) swarm.#remember(ticket);
    // Neighbours know it by its port: the same again, unless something else has it by now.
    const again = ports.port === 0 ? Number(kept?.address.split(":").at(-1) ?? 0) : ports.port;
    const port = await swarm.#server
      .listen(ports.host, again)
      .catch(async () => await swarm.#server.listen(ports.host, ports.port));
    swarm.#address = `${ports.host.includes(":") ? `[${ports.host}]` : ports.host}:${port}`;
    return swarm;
  }

  /** Where others reach it. */
  get address(): string {
    return this.#address;
  }

  get sentBytes(): number {
    return this.#server.sentBytes;
  }

  /** Asks a node whom a halt is to be passed on to, and keeps that. */
  async meet(): Promise<void> {
    const { ask, rack, folder } = this.#ports;
    const { secret, caps, parents } = await ask({ kind: "meet", address: this.#address, rack });
    this.#server.know(secret);
    this.#server.setCaps(strictest(this.#ports.caps, caps));
    const tickets = parents.filter((ticket) => ticket !== null);
    for (const ticket of tickets) this.#remember(ticket);
    if (folder !== undefined) await writeKept(folder, { address: this.#address, secret, tickets });
  }

  /** Fills a staging folder with what peers and the node have of the release. */
  async fill(content: string, manifest: Spread, folder: string, { isRollback, signal }: FillWish): Promise<void> {
    if (!manifest.units || manifest.units.sha256.length === 0 || this.#fetching.has(content)) return;
    const files = new UnitFiles(folder, manifest, manifest.units);
    await files.prepare(manifest);
    this.#server.serve(content, files);
    if (files.have.isComplete) return;
    const fetching: Fetching = {
      content,
      files,
      fetcher: new Fetcher<string>(files.have),
      priority: isRollback ? priorities.rollback : priorities.release,
      tickets: new Map(),
      outs: new Map(),
      stop: new AbortController(),
      done: Promise.withResolvers<void>(),
      lastMs: this.#ports.nowMs(),
      isBanned: false,
    };
    this.#fetching.set(content, fetching);
    const timer = setInterval(() => this.#tick(fetching), tickMs);
    const abandon = (): void => fetching.done.reject(signal?.reason as Error);
    signal?.addEventListener("abort", abandon, { once: true });
    fetching.done.promise.catch(() => undefined); // it may be abandoned while this still joins
    try {
      await this.#join(fetching);
      await fetching.done.promise;
    } finally {
      clearInterval(timer);
      signal?.removeEventListener("abort", abandon);
      fetching.stop.abort();
      for (const { socket } of fetching.outs.values()) socket.destroy();
      this.#fetching.delete(content);
    }
  }

  /** The release is complete in this folder, verified, and is served to others from now on. */
  keep(content: string, manifest: Spread, folder: string): void {
    if (!manifest.units) return;
    const files = new UnitFiles(folder, manifest, manifest.units);
    files.trust();
    this.#server.withdraw(content);
    this.#server.serve(content, files);
  }

  withdraw(content: string): void {
    this.#server.withdraw(content);
  }

  setCaps(caps: Caps): void {
    this.#server.setCaps(strictest(this.#ports.caps, caps));
  }

  /** To all neighbours, in both directions. */
  tell(message: PeerMessage): void {
    this.#server.tell(message);
    const frame = messageFrame(message);
    for (const { outs } of this.#fetching.values()) for (const { socket } of outs.values()) socket.write(frame);
  }

  /**
   * Passes a goal on to the machines that this one fetched from before, whether a node answers or not. Each passes it
   * on in turn, once, since a goal that is not newer is refused.
   */
  spread(signed: Signed): void {
    const message = { kind: "goal", signed } as const;
    this.tell(message);
    for (const ticket of this.#neighbours.values()) this.#say(ticket, (socket) => socket.end(messageFrame(message)));
  }

  /** Asks a few neighbours for halts that this machine may have missed: no node answers it. */
  askForHalts(): void {
    const some = [...this.#neighbours.values()].toSorted(() => Math.random() - 0.5).slice(0, askedMax);
    for (const ticket of some)
      this.#say(ticket, (socket) => {
        const frames = new Frames();
        socket.on("data", (part: Buffer) => {
          try {
            for (const heard of frames.take(part)) if (heard.kind === "goal") this.#ports.goal(heard.signed as Signed);
          } catch (error) {
            this.#ports.log(`peer ${ticket.peer}: ${(error as Error).message}`);
            socket.destroy();
          }
        });
        socket.write(messageFrame({ kind: "halts" }));
      });
  }

  /** A connection for a word or two. */
  #say(ticket: Ticket, say: (socket: TLSSocket) => void): void {
    const socket = this.#dial(ticket);
    if (!socket) return;
    const slow = setTimeout(() => socket.destroy(), connectMsMax);
    socket.on("error", () => undefined);
    socket.on("close", () => clearTimeout(slow));
    socket.on("secureConnect", () => say(socket));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { done } of this.#fetching.values()) done.resolve();
    await this.#server[Symbol.asyncDispose]();
  }

  async #join(fetching: Fetching): Promise<void> {
    const { content, files } = fetching;
    const { rack } = this.#ports;
    const asked = { kind: "join", content, units: files.layout.units, address: this.#address, rack } as const;
    const parents = this.#learn(fetching, await this.#ports.ask(asked));
    this.#step(fetching, { kind: "planned", parents });
  }

  /** Keeps the tickets and answers with the names of the parents. */
  #learn(fetching: Fetching, answer: SwarmAnswer): readonly (string | undefined)[] {
    const { secret, origin, parents, caps, isBanned } = answer;
    const { tickets, done } = fetching;
    this.#server.know(secret);
    this.#server.setCaps(strictest(this.#ports.caps, caps));
    this.#origin = origin;
    if (isBanned && !fetching.isBanned) {
      fetching.isBanned = true;
      this.#ports.log("other machines found wrong bytes of this one: the node alone sends it the rest");
      done.resolve();
    }
    for (const ticket of parents) {
      if (!ticket) continue;
      tickets.set(ticket.peer, ticket);
      if (ticket.peer !== origin) this.#remember(ticket);
    }
    return parents.map((ticket) => ticket?.peer);
  }

  #remember(ticket: Ticket): void {
    this.#neighbours.delete(ticket.peer);
    this.#neighbours.set(ticket.peer, ticket);
    const [oldest] = this.#neighbours.keys();
    if (this.#neighbours.size > neighboursMax && oldest !== undefined) this.#neighbours.delete(oldest);
  }

  #tick(fetching: Fetching): void {
    const nowMs = this.#ports.nowMs();
    if (nowMs - fetching.lastMs > stuckMsMax) {
      this.#ports.log(`no unit of ${fetching.content.slice(0, 12)} for a minute; the rest comes from the node`);
      fetching.done.resolve();
    } else this.#step(fetching, { kind: "tick" });
  }

  #step(fetching: Fetching, event: FetchEvent<string>): void {
    const effects: FetchEffect<string>[] = [];
    fetching.fetcher.step(event, this.#ports.nowMs(), effects);
    for (const effect of effects) this.#carryOut(fetching, effect);
  }

  #carryOut(fetching: Fetching, effect: FetchEffect<string>): void {
    switch (effect.kind) {
      case "subscribe":
        if (effect.flow.peer === this.#origin) void this.#fromOrigin(fetching, effect.flow);
        else this.#subscribe(fetching, effect.flow);
        return;
      case "shorten":
        this.#write(fetching, effect.flow.peer, { kind: "shorten", id: effect.flow.id, to: effect.flow.end });
        return;
      case "query":
        if (effect.flow.peer === this.#origin)
          queueMicrotask(() =>
            this.#step(fetching, { kind: "answered", flow: effect.flow, isWaiting: false, count: Infinity }),
          );
        else this.#write(fetching, effect.flow.peer, { kind: "query", id: effect.flow.id });
        return;
      case "ask":
        void this.#askFor(fetching, effect);
        return;
      case "drop":
        this.#ports.log(`${effect.peer} sent wrong bytes: it is not asked again`);
        fetching.outs.get(effect.peer)?.socket.destroy();
        fetching.outs.delete(effect.peer);
        return;
      case "complete":
        void this.#ports.ask({ kind: "complete", content: fetching.content }).catch(() => undefined);
        fetching.done.resolve();
    }
  }

  async #askFor(
    fetching: Fetching,
    { stripe, why, about }: Extract<FetchEffect<string>, { kind: "ask" }>,
  ): Promise<void> {
    const asked = {
      kind: "ask",
      content: fetching.content,
      stripe,
      why,
      ...(about !== undefined && { about }),
    } as const;
    let peer: string | undefined;
    try {
      [peer] = this.#learn(fetching, await this.#ports.ask(asked));
    } catch (error) {
      // The node has started again, and knows nothing of this machine.
      if (isFault(error, "not-found")) return await this.#join(fetching).catch(() => undefined);
      // The node is away: what there is of parents goes on, and the next look asks again.
      this.#ports.log(`ask for a parent: ${(error as Error).message}`);
    }
    this.#step(fetching, { kind: "given", stripe, peer, why });
  }

  #subscribe(fetching: Fetching, flow: Flow<string>): void {
    const out = fetching.outs.get(flow.peer) ?? this.#connect(fetching, flow.peer);
    if (!out) {
      queueMicrotask(() => this.#step(fetching, { kind: "gone", peer: flow.peer }));
      return;
    }
    const { id, stripe, next: from, end: to } = flow;
    const { content, priority } = fetching;
    out.socket.write(messageFrame({ kind: "subscribe", id, content, stripe, from, to, priority }));
  }

  #write({ outs }: Fetching, peer: string, message: PeerMessage): void {
    outs.get(peer)?.socket.write(messageFrame(message));
  }

  #connect(fetching: Fetching, peer: string): Out | undefined {
    const ticket = fetching.tickets.get(peer);
    const socket = ticket && this.#dial(ticket);
    if (!socket) return undefined;
    const out: Out = { socket, frames: new Frames() };
    fetching.outs.set(peer, out);
    const slow = setTimeout(() => socket.destroy(), connectMsMax);
    socket.on("secureConnect", () => clearTimeout(slow));
    socket.on("error", () => undefined); // "close" follows
    socket.on("close", () => {
      clearTimeout(slow);
      if (fetching.outs.get(peer) !== out) return;
      fetching.outs.delete(peer);
      this.#step(fetching, { kind: "gone", peer });
    });
    this.#read(fetching, peer, out);
    return out;
  }

  #dial({ address, identity, key }: Ticket): TLSSocket | undefined {
    const at = /^\[?([^\]]+)\]?:(\d+)$/.exec(address);
    if (!at) return undefined;
    return connect({
      host: at[1] ?? "",
      port: Number(at[2]),
      ...peerTls,
      // The key itself says who answers.
      checkServerIdentity: () => undefined,
      pskCallback: () => ({ identity, psk: Buffer.from(key, "base64") }),
    });
  }

  /** One frame after the other: a unit is on the disk before the next one is looked at. */
  #read(fetching: Fetching, peer: string, { socket, frames }: Out): void {
    const read = async (): Promise<void> => {
      for await (const part of socket)
        for (const frame of frames.take(part as Buffer))
          if (frame.kind === "unit") await this.#received(fetching, peer, frame);
          else this.#heard(fetching, peer, frame);
    };
    read().catch((error: unknown) => {
      if (!fetching.stop.signal.aborted) this.#ports.log(`peer ${peer}: ${(error as Error).message}`);
      socket.destroy();
    });
  }

  #heard(fetching: Fetching, peer: string, message: PeerMessage): void {
    if (message.kind === "goal") return this.#ports.goal(message.signed as Signed);
    if (message.kind !== "answer" && message.kind !== "refused") return;
    const flow = fetching.fetcher.flows.find((each) => each.id === message.id && each.peer === peer);
    if (!flow) return;
    if (message.kind === "answer") this.#step(fetching, { ...message, kind: "answered", flow });
    else this.#step(fetching, { kind: "refused", flow });
  }

  async #received(fetching: Fetching, peer: string, { id, unit, bytes }: Omit<UnitFrame, "kind">): Promise<void> {
    const { files, fetcher, content } = fetching;
    const flow = fetcher.flows.find((each) => each.id === id && each.peer === peer);
    if (!flow) return; // it was cut short meanwhile
    if (!files.isRight(unit, bytes)) return this.#step(fetching, { kind: "bad", flow });
    if (!files.have.has(unit)) await files.write(unit, bytes);
    fetching.lastMs = this.#ports.nowMs();
    this.#step(fetching, { kind: "unit", flow, unit });
    this.#server.arrived(content, unit);
  }

  async #fromOrigin(fetching: Fetching, flow: Flow<string>): Promise<void> {
    const { stripe, next: from, end: to, id, peer } = flow;
    const range = { stripe, from, to, priority: fetching.priority };
    try {
      for await (const { unit, bytes } of this.#ports.originUnits(fetching.content, range, fetching.stop.signal)) {
        await this.#received(fetching, peer, { id, unit, bytes });
        if (!fetching.fetcher.flows.includes(flow)) return;
      }
    } catch (error) {
      if (fetching.stop.signal.aborted) return;
      this.#ports.log(`units from the node: ${(error as Error).message}`);
    }
    if (fetching.fetcher.flows.includes(flow)) this.#step(fetching, { kind: "refused", flow });
  }
}
