/**
 * A node's membership in the mesh: the protocol machine on real sockets. Its information is a hint: a member reported
 * alive may be dead, and the other way round. The journal decides who owns what.
 */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { addressText, normalHost, type Address } from "./address.ts";
import type { Effect, MemberView, MeshCounts, MeshEvent } from "./machine/core.ts";
import { Envelope } from "./wire/envelope.ts";
import { Keyring } from "./wire/keyring.ts";
import { limitsDefault, type MeshLimits } from "./machine/limits.ts";
import { Machine } from "./machine/machine.ts";
import { encodeError } from "./wire/messages.ts";
import { profiles, type MeshTimes } from "./machine/profile.ts";
import { rimLimitsDefault, type RimLimits } from "./rim-limits.ts";
import { StreamReader } from "./wire/stream-reader.ts";
import type { Tags } from "./tags.ts";
import { TcpPort } from "./tcp-port.ts";
import { UdpPort } from "./udp-port.ts";

export type MeshOptions = {
  readonly name: string;
  /** UDP and TCP on the same port; port 0 for any free one. */
  readonly listen: Address;
  /** The address for others, if it is not the one we listen on. */
  readonly advertise?: Partial<Address> | undefined;
  /** Our first tags, computed from the address for others. */
  readonly tags?: ((address: Address) => Tags) | undefined;
  readonly times?: MeshTimes | undefined;
  readonly label?: string | undefined;
  readonly keys?: readonly Uint8Array[] | undefined;
  readonly compresses?: boolean | undefined;
  /** host:port of members to join, tried repeatedly while there are no other members. */
  readonly seeds?: readonly string[] | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** For nonces: unpredictable and never repeated. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly log: (line: string) => void;
  readonly limits?: Partial<MeshLimits> | undefined;
  readonly rimLimits?: Partial<RimLimits> | undefined;
};

export type MeshStatus = {
  readonly name: string;
  readonly address: string;
  readonly health: number;
  readonly counts: Readonly<MeshCounts>;
  readonly packetsDropped: number;
  readonly streamsDropped: number;
};

const seedDelayMsMin = 1_000;
const seedDelayMsMax = 30_000;
const listenersMax = 100;

export class Mesh implements AsyncDisposable {
  readonly keyring: Keyring;
  readonly #options: MeshOptions;
  readonly #machine: Machine;
  readonly #udp: UdpPort;
  readonly #tcp: TcpPort;
  readonly #listeners = new Set<(event: MeshEvent) => void>();
  readonly #waiting = new Map<number, (why: string | undefined) => void>();
  readonly #left = Promise.withResolvers<void>();
  readonly address: Address;
  #stopTimer: () => void = () => {};
  #timerAtMs = Number.POSITIVE_INFINITY;
  #stopSeeds: () => void = () => {};
  #isClosed = false;

  private constructor(options: MeshOptions, parts: MeshParts) {
    this.#options = options;
    this.keyring = parts.keyring;
    this.#machine = parts.machine;
    this.#udp = parts.udp;
    this.#tcp = parts.tcp;
    this.address = parts.address;
  }

  static async open(options: MeshOptions): Promise<Mesh> {
    const keyring = new Keyring(options.keys);
    const limits: MeshLimits = { ...limitsDefault, ...options.limits };
    const times = options.times ?? profiles.lan;
    const envelope = new Envelope({
      label: options.label ?? "",
      keyring,
      compresses: options.compresses ?? true,
      sealVersion: 1,
      randomBytes: options.randomBytes,
      limits,
    });
    const made: { mesh?: Mesh } = {}; // packets that arrive before are lost, like any packet may be
    const { udp, tcp } = await openPorts(options, {
      packet: (from, bytes) => made.mesh?.run((machine, nowMs) => machine.packet(nowMs, from, bytes)),
      reader: () => new StreamReader(envelope, limits),
      answerStream: (message) => made.mesh?.run((machine, nowMs) => machine.answerStream(nowMs, message)),
      refused: (why) => (keyring.isEmpty ? envelope.stream(encodeError(why)) : undefined),
      streamTimeoutMs: times.streamTimeoutMs,
    });
    const address = advertised(options, tcp.port);
    const { name, random, clock } = options;
    const tags = options.tags?.(address) ?? {};
    const nowMs = clock.monotonicMs();
    const machine = new Machine({ name, address, tags, times, limits, envelope, keyring, random, nowMs });
    const mesh = (made.mesh = new Mesh(options, { keyring, machine, udp, tcp, address }));
    mesh.run(() => {});
    mesh.#trySeeds(0);
    return mesh;
  }

  /** All known members, including ourselves. */
  members(): readonly MemberView[] {
    const now = this.run((machine, nowMs) => machine.members(nowMs));
    return now ?? this.#machine.members(this.#options.clock.monotonicMs());
  }

  status(): MeshStatus {
    const { name, counts, healthScore } = this.#machine;
    return {
      name,
      address: addressText(this.address),
      health: healthScore,
      counts: { ...counts },
      packetsDropped: this.#udp.dropped,
      streamsDropped: this.#tcp.dropped,
    };
  }

  /** Calls back at each event; the returned function unsubscribes. */
  listen(listener: (event: MeshEvent) => void): () => void {
    if (this.#listeners.size >= listenersMax) throw new Fault("exhausted", "listen to the mesh", { listenersMax });
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  setTags(tags: Tags): void {
    this.run((machine, nowMs) => machine.setTags(nowMs, tags), true);
  }

  /** host:port, or host for the default port; returns how many could be joined. Throws "unavailable" if none could. */
  async join(targets: readonly string[]): Promise<number> {
    const reasons: string[] = [];
    let joined = 0;
    for (const target of targets)
      try {
        for (const address of await resolve(target)) {
          const why = await this.#outcome((machine, nowMs) => machine.join(nowMs, address));
          if (why === undefined) joined += 1;
          else reasons.push(why);
        }
      } catch (error) {
        reasons.push(error instanceof Error ? error.message : String(error));
      }
    if (joined === 0 && targets.length > 0)
      throw new Fault("unavailable", "join a mesh", { targets: targets.join(), why: reasons.join("; ").slice(0, 500) });
    return joined;
  }

  /** Small messages may be lost unless `sure`. Throws "not-found" for an unknown member. */
  async send(to: string, bytes: Uint8Array, options: { readonly sure?: boolean } = {}): Promise<void> {
    const why = await this.#outcome((machine, nowMs) => {
      const id = machine.sendUser(nowMs, to, bytes, options.sure ?? false);
      if (id === undefined) throw new Fault("not-found", "send to a member", { to });
      return id;
    });
    if (why !== undefined) throw new Fault("unavailable", "send to a member", { to, why });
  }

  /** Leaves gracefully, so that we are not taken for failed; resolves when the messages have had time to spread. */
  async leave(): Promise<void> {
    this.#stopSeeds();
    this.run((machine, nowMs) => machine.leave(nowMs));
    await this.#left.promise;
  }

  /** Without leave messages. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopSeeds();
    this.#stopTimer();
    this.#left.resolve();
    for (const done of this.#waiting.values()) done("the mesh is closed");
    this.#waiting.clear();
    await Promise.all([this.#udp.close(), this.#tcp.close()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Runs a step of the machine, then carries out its effects. Input from others must never crash the node. */
  run<T>(step: (machine: Machine, nowMs: number) => T, rethrow = false): T | undefined {
    if (this.#isClosed) return undefined;
    const nowMs = this.#options.clock.monotonicMs();
    try {
      return step(this.#machine, nowMs);
    } catch (error) {
      if (rethrow) throw error;
      this.#options.log(`mesh: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      return undefined;
    } finally {
      for (const effect of this.#machine.drain()) this.#perform(effect);
      this.#setTimer();
    }
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case "send":
        return this.#udp.send(effect.to, effect.bytes);
      case "dial":
        return void this.#dial(effect);
      case "tell":
        return this.#tell(effect.event);
      case "joined":
      case "sent":
        this.#waiting.get(effect.id)?.(effect.why);
        this.#waiting.delete(effect.id);
        return;
      case "left":
        return this.#left.resolve();
      default:
        return effect satisfies never;
    }
  }

  async #dial(effect: Effect & { readonly kind: "dial" }): Promise<void> {
    try {
      const message = await this.#tcp.dial(effect);
      this.run((machine, nowMs) => machine.answered(nowMs, effect.id, message));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.run((machine, nowMs) => machine.failed(nowMs, effect.id, why));
    }
  }

  #tell(event: MeshEvent): void {
    for (const listener of this.#listeners)
      try {
        listener(event);
      } catch (error) {
        this.#options.log(`mesh: a listener: ${String(error)}`);
      }
  }

  /** The effect with the number that the step returned may come at once, or later. */
  #outcome(step: (machine: Machine, nowMs: number) => number): Promise<string | undefined> {
    const { promise, resolve: done } = Promise.withResolvers<string | undefined>();
    if (this.#isClosed) return Promise.resolve("the mesh is closed");
    this.run((machine, nowMs) => void this.#waiting.set(step(machine, nowMs), done), true);
    return promise;
  }

  #setTimer(): void {
    if (this.#isClosed) return;
    const { nextAtMs } = this.#machine;
    if (nextAtMs === this.#timerAtMs || !Number.isFinite(nextAtMs)) return;
    this.#stopTimer();
    this.#timerAtMs = nextAtMs;
    const { clock } = this.#options;
    this.#stopTimer = clock.after(Math.max(0, nextAtMs - clock.monotonicMs()), () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.run((machine, nowMs) => machine.advance(nowMs));
    });
  }

  #trySeeds(afterMs: number): void {
    const { seeds = [], clock, random, log } = this.#options;
    if (seeds.length === 0 || this.#isClosed) return;
    this.#stopSeeds = clock.after(afterMs, () => {
      const isAlone = !this.members().some(({ isSelf, state }) => !isSelf && state === "alive");
      const nextMs = Math.min(seedDelayMsMax, Math.max(seedDelayMsMin, afterMs * 2)) * (0.5 + random.fraction() / 2);
      if (!isAlone) return this.#trySeeds(seedDelayMsMin);
      this.join(seeds).then(
        () => this.#trySeeds(seedDelayMsMin),
        (error: unknown) => {
          log(`mesh: ${error instanceof Error ? error.message : String(error)}; will retry`);
          this.#trySeeds(nextMs);
        },
      );
    });
  }
}

type MeshParts = {
  readonly keyring: Keyring;
  readonly machine: Machine;
  readonly udp: UdpPort;
  readonly tcp: TcpPort;
  readonly address: Address;
};

type RimPorts = Parameters<typeof UdpPort.open>[1] & Parameters<typeof TcpPort.open>[1];

/** Both on one port. With port 0, one may be free for TCP and taken for UDP: then another is tried. */
async function openPorts(
  { listen, clock, log, rimLimits }: MeshOptions,
  calls: Omit<RimPorts, "clock" | "log" | "limits">,
): Promise<{ readonly udp: UdpPort; readonly tcp: TcpPort }> {
  const ports: RimPorts = { ...calls, clock, log, limits: { ...rimLimitsDefault, ...rimLimits } };
  for (let tries = 1; ; tries += 1) {
    const tcp = await TcpPort.open(listen, ports);
    try {
      return { tcp, udp: await UdpPort.open({ host: listen.host, port: tcp.port }, ports) };
    } catch (error) {
      await tcp.close();
      if (listen.port !== 0 || tries >= 10) throw error;
    }
  }
}

function advertised({ listen, advertise = {} }: MeshOptions, port: number): Address {
  const isAny = listen.host === "0.0.0.0" || listen.host === "::";
  const host = advertise.host ?? (isAny ? ownAddress() : listen.host);
  return { host: normalHost(host), port: advertise.port ?? port };
}

function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}

export const meshPortDefault = 7_946;

async function resolve(target: string): Promise<readonly Address[]> {
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(target);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined) throw new Fault("invalid", "join a mesh", { target, why: "write host:port" });
  const port = match?.[3] === undefined ? meshPortDefault : Number(match[3]);
  const found = await lookup(host, { all: true });
  return found.slice(0, 16).map(({ address }) => ({ host: normalHost(address), port }));
}
