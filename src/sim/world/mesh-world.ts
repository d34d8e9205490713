/**
 * Meshes on a simulated network: the real protocol machines, with packets that are late, lost, duplicated or cut off,
 * streams that are slow where packets are lost, and nodes that are killed, stopped for a while, or started again under
 * their old name. Everything is drawn from one seed.
 */
import { must } from "#base/assert.ts";
import { hash32, Random } from "#base/random.ts";
import { addressText, type Address } from "#mesh/address.ts";
import type { Effect } from "#mesh/machine/core.ts";
import { Envelope } from "#mesh/wire/envelope.ts";
import { Keyring } from "#mesh/wire/keyring.ts";
import { limitsDefault } from "#mesh/machine/limits.ts";
import { Machine } from "#mesh/machine/machine.ts";
import type { MemberState, StreamMessage } from "#mesh/wire/messages.ts";
import { profiles, type MeshTimes } from "#mesh/machine/profile.ts";
import { StreamReader } from "#mesh/wire/stream-reader.ts";
import { Heap } from "./heap.ts";

export type MeshWorldOptions = {
  readonly seed: number;
  readonly nodes: number;
  readonly times?: MeshTimes;
  /** For each packet, each way. */
  readonly lossShare?: number;
  readonly doubledShare?: number;
  readonly keys?: readonly Uint8Array[];
  readonly compresses?: boolean;
};

type SimNode = {
  readonly name: string;
  readonly address: Address;
  machine: Machine;
  envelope: Envelope;
  state: "up" | "stopped" | "killed";
  /** Packets that arrived while it was stopped. */
  inbox: (() => void)[];
  wakeAtMs: number;
  lives: number;
};

type Step = { readonly atMs: number; readonly order: number; readonly run: () => void };

/** What a socket's buffer holds while its process does not run. */
const inboxMax = 500;

export class MeshWorld {
  readonly trace: string[] = [];
  readonly nodes: SimNode[] = [];
  readonly #options: MeshWorldOptions;
  readonly #random: Random;
  readonly #steps = new Heap<Step>();
  readonly #byAddress = new Map<string, SimNode>();
  #order = 0;
  #sides: ReadonlyMap<string, number> = new Map();
  #lossShare: number;
  nowMs = 0;
  packets = 0;

  constructor(options: MeshWorldOptions) {
    this.#options = options;
    this.#random = new Random(`mesh:${options.seed}`);
    this.#lossShare = options.lossShare ?? 0;
    for (let i = 0; i < options.nodes; i += 1) this.#add(`n${i}`, { host: `10.0.${i >> 8}.${i & 255}`, port: 7_946 });
  }

  #add(name: string, address: Address): void {
    const { machine, envelope } = this.#boot(name, address, 0);
    const node: SimNode = {
      name,
      address,
      machine,
      envelope,
      state: "up",
      inbox: [],
      wakeAtMs: Number.POSITIVE_INFINITY,
      lives: 0,
    };
    this.nodes.push(node);
    this.#byAddress.set(addressText(address), node);
    this.#after(node);
  }

  #boot(name: string, address: Address, life: number): { readonly machine: Machine; readonly envelope: Envelope } {
    const { seed, times = profiles.lan, keys = [], compresses = false } = this.#options;
    const random = new Random(`mesh:${seed}:${name}:${life}`);
    const keyring = new Keyring(keys);
    const randomBytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => random.below(256));
    const envelope = new Envelope({
      label: "",
      keyring,
      compresses,
      sealVersion: 1,
      randomBytes,
      limits: limitsDefault,
    });
    const machine = new Machine({
      name,
      address,
      tags: { role: "millrace", life: String(life) },
      times,
      limits: limitsDefault,
      envelope,
      keyring,
      random,
      nowMs: this.nowMs,
    });
    return { machine, envelope };
  }

  node(i: number): SimNode {
    return must(this.nodes[i], `node ${i}`);
  }

  join(i: number, seed: number): void {
    const node = this.node(i);
    this.#does(node, () => void node.machine.join(this.nowMs, this.node(seed).address));
  }

  /** All nodes join through the first. */
  joinAll(): void {
    for (let i = 1; i < this.nodes.length; i += 1) this.join(i, 0);
  }

  leave(i: number): void {
    const node = this.node(i);
    this.#does(node, () => node.machine.leave(this.nowMs));
  }

  kill(i: number): void {
    const node = this.node(i);
    this.#say(node, "killed");
    node.state = "killed";
    node.inbox = [];
  }

  restart(i: number, seed: number): void {
    const node = this.node(i);
    node.lives += 1;
    this.#say(node, "starts again");
    Object.assign(node, this.#boot(node.name, node.address, node.lives), { state: "up", inbox: [] });
    this.#after(node);
    this.join(i, seed);
  }

  /** Like SIGSTOP: packets are buffered, timers are late. */
  stop(i: number): void {
    this.#say(this.node(i), "stopped");
    this.node(i).state = "stopped";
  }

  resume(i: number): void {
    const node = this.node(i);
    this.#say(node, "goes on");
    node.state = "up";
    // timers fire before packets are read when a process wakes
    this.#does(node, () => node.machine.advance(this.nowMs));
    for (const arrive of node.inbox.splice(0)) arrive();
  }

  /** Nodes receive packets only from their own side; undefined: no partition. */
  partition(sideOf: ((i: number) => number) | undefined): void {
    this.trace.push(`${this.nowMs} ${sideOf ? "the network is cut" : "the network is whole"}`);
    this.#sides = new Map(this.nodes.map(({ name }, i) => [name, sideOf?.(i) ?? 0]));
  }

  setLoss(share: number): void {
    this.#lossShare = share;
  }

  run(ms: number): void {
    this.runUntil(() => false, ms);
  }

  /** How long it took; undefined if the condition never held. */
  runUntil(holds: () => boolean, limitMs: number): number | undefined {
    const startMs = this.nowMs;
    const endMs = startMs + limitMs;
    for (let nextLookMs = startMs; ;) {
      if (this.nowMs >= nextLookMs) {
        if (holds()) return this.nowMs - startMs;
        nextLookMs = this.nowMs + 50;
      }
      const step = this.#steps.pop();
      if (!step || step.atMs > endMs) {
        if (step) this.#steps.push(step);
        this.nowMs = endMs;
        return holds() ? this.nowMs - startMs : undefined;
      }
      this.nowMs = step.atMs;
      step.run();
    }
  }

  /** What one node believes of another. */
  believes(i: number, about: number): MemberState | undefined {
    return this.node(i).machine.stateOf(this.node(about).name);
  }

  upNodes(): readonly number[] {
    return this.nodes.flatMap(({ state }, i) => (state === "up" ? [i] : []));
  }

  /** Each running node considers exactly the running nodes alive. */
  isTrueForAll(): boolean {
    const up = this.upNodes();
    return up.every(
      (i) => this.node(i).machine.aliveCount === up.length && up.every((about) => this.believes(i, about) === "alive"),
    );
  }

  count(what: keyof Machine["counts"]): number {
    return this.nodes.reduce((sum, { machine }) => sum + machine.counts[what], 0);
  }

  hash(): string {
    return [0, 1].map((seed) => hash32(this.trace.join("\n"), seed).toString(16)).join("");
  }

  #does(node: SimNode, act: () => void): void {
    act();
    for (const effect of node.machine.drain()) this.#perform(node, effect);
    this.#after(node);
  }

  #after(node: SimNode): void {
    const atMs = node.machine.nextAtMs;
    if (atMs >= node.wakeAtMs || node.state !== "up") return;
    node.wakeAtMs = atMs;
    const { lives } = node;
    this.#at(Math.max(this.nowMs, Math.ceil(atMs)), () => {
      if (node.wakeAtMs === atMs) node.wakeAtMs = Number.POSITIVE_INFINITY;
      if (node.state === "up" && node.lives === lives) this.#does(node, () => node.machine.advance(this.nowMs));
    });
  }

  #perform(node: SimNode, effect: Effect): void {
    switch (effect.kind) {
      case "send":
        return this.#send(node, effect.to, effect.bytes);
      case "dial":
        return this.#dial(node, effect);
      case "tell":
        if (effect.event.kind === "user") this.#say(node, `hears from ${effect.event.from}`);
        else if (effect.event.kind === "conflict") this.#say(node, `conflict over ${effect.event.name}`);
        else this.#say(node, `${effect.event.kind} ${effect.event.member.name} #${effect.event.member.incarnation}`);
        return;
      case "joined":
        return this.#say(node, effect.why === undefined ? "joined" : "could not join");
      case "left":
        this.#say(node, "has left");
        node.state = "killed";
        return;
      default:
        return;
    }
  }

  #send(from: SimNode, to: Address, bytes: Uint8Array): void {
    this.packets += 1;
    const target = this.#byAddress.get(addressText(to));
    if (!target || !this.#connects(from, target)) return;
    const copies = this.#random.chance(this.#options.doubledShare ?? 0) ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      if (this.#random.chance(this.#lossShare)) continue;
      this.#at(this.nowMs + this.#delayMs(), () =>
        this.#arrive(target, () => target.machine.packet(this.nowMs, from.address, bytes)),
      );
    }
  }

  #arrive(target: SimNode, act: () => void): void {
    if (target.state === "up") this.#does(target, act);
    else if (target.state === "stopped" && target.inbox.length < inboxMax)
      target.inbox.push(() => this.#arrive(target, act));
  }

  /** Handshake, request and answer, each repeated until it gets through, as TCP does. */
  #dial(from: SimNode, effect: Effect & { readonly kind: "dial" }): void {
    const { id, to, bytes, withinMs, wantsAnswer } = effect;
    const target = this.#byAddress.get(addressText(to));
    const deadlineMs = this.nowMs + withinMs;
    const { lives } = from;
    const settle = { done: false };
    const back = (act: () => void): void => {
      if (settle.done || from.lives !== lives) return;
      settle.done = true;
      this.#arrive(from, act);
    };
    const fail = (why: string): void => back(() => from.machine.failed(this.nowMs, id, why));
    this.#at(deadlineMs, () => fail("too late"));
    if (!target || !this.#connects(from, target)) return;
    const askedAtMs = this.nowMs + this.#segmentMs(1_000) + this.#segmentMs(1_000) + this.#segmentMs(250);
    if (target.state === "killed") return this.#at(this.nowMs + this.#segmentMs(1_000), () => fail("refused"));
    this.#at(askedAtMs, () => {
      if (target.state === "killed" || !this.#connects(from, target)) return;
      this.#arrive(target, () => {
        const answer = target.machine.answerStream(this.nowMs, readStream(target.envelope, bytes));
        this.#at(this.nowMs + this.#segmentMs(250), () => {
          if (!this.#connects(from, target)) return;
          if (!wantsAnswer) back(() => from.machine.answered(this.nowMs, id, undefined));
          else if (answer) back(() => from.machine.answered(this.nowMs, id, readStream(from.envelope, answer)));
        });
      });
    });
  }

  #segmentMs(againAfterMs: number): number {
    let ms = this.#delayMs();
    for (let wait = againAfterMs; this.#random.chance(this.#lossShare); wait *= 2) ms += wait;
    return ms;
  }

  #delayMs(): number {
    return 1 + this.#random.below(this.#random.chance(0.02) ? 200 : 10);
  }

  #connects(a: SimNode, b: SimNode): boolean {
    return (this.#sides.get(a.name) ?? 0) === (this.#sides.get(b.name) ?? 0);
  }

  #at(atMs: number, run: () => void): void {
    this.#steps.push({ atMs, order: (this.#order += 1), run });
  }

  #say(node: SimNode, what: string): void {
    this.trace.push(`${this.nowMs} ${node.name} ${what}`);
  }
}

function readStream(envelope: Envelope, bytes: Uint8Array): StreamMessage {
  return must(new StreamReader(envelope, limitsDefault).push(bytes), "a whole message");
}
