/**
 * A simulated executor: reserves over the real router, runs what the scripts say, respects its lease, plans, and
 * commits. Some misbehave now and then: they stall, lie, repeat and vanish, and the cluster must tolerate that.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Command, CommandOf } from "#kernel/model/command.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { Router, Settled } from "#shard/router/router.ts";
import { marginMsOf } from "#worker/holding.ts";
import type { WorkSources } from "#worker/visits/sources.ts";
import { makeOutputs } from "./outputs.ts";
import { planFor } from "./planner.ts";
import type { Life } from "#sim/world/machine.ts";
import { misbehave, type Misbehaviour } from "./misbehaviour.ts";
import type { Runs } from "./runs.ts";
import { publishOf, readTask } from "./script.ts";

export type ExecutorPorts = {
  readonly life: Life;
  readonly router: Router;
  /** Another router, with its own beliefs about who owns what. */
  readonly otherRouter: Router;
  /** The nodes as a real worker asks them for work. */
  readonly sources: WorkSources;
  readonly blobs: BlobStore;
  readonly random: Random;
  readonly runs: Runs;
  /** Gates that were waited for, shared by all planners. */
  readonly waited: Set<string>;
  readonly injected: (kind: string) => void;
};

export type ExecutorHabits = {
  readonly name: string;
  readonly offers: readonly string[];
  readonly slots: number;
  readonly shards: number;
  readonly waitMs: number;
  readonly heldShardsMax: number;
  /** Chance per grant of each way of misbehaving. Faults change it; healing empties it. */
  readonly misbehaviour: ReadonlyMap<Misbehaviour, number>;
};

export type Held = {
  readonly shard: number;
  readonly grant: Grant;
  /** On the executor's own clock, counted from before the request that granted or renewed it was sent. */
  untilMono: number;
  /** It was asked to stop, or the claim is lost. */
  readonly stop: AbortController;
  renewed: boolean;
  /** The number of the last signal that arrived. */
  heard: number;
};

export class Executor {
  readonly ports: ExecutorPorts;
  readonly habits: ExecutorHabits;
  readonly held = new Map<string, Held>();
  readonly #clock: Clock;
  #nonce = 0;
  #busy = 0;
  #got = 0;

  constructor(ports: ExecutorPorts, habits: ExecutorHabits) {
    this.ports = ports;
    this.habits = habits;
    this.#clock = ports.life.clock;
  }

  start(): void {
    for (let i = 0; i < Math.min(4, this.habits.shards); i += 1) void this.#reserveLoop();
    void this.#renewLoop();
  }

  /** Repeats the request until there is a definite answer, or the deadline passes. */
  async ask(shard: number, command: Command, deadlineMs = 20_000, waitMs?: number): Promise<Settled | undefined> {
    try {
      const { random, router, otherRouter } = this.ports;
      const way = random.chance(0.3) ? otherRouter : router;
      // Now and then as several commands in one request: here the same one twice.
      if (waitMs === undefined && random.chance(0.1)) {
        const got = await way.request({ kind: "commands", shard, commands: [command, command] }, { deadlineMs });
        return got.kind === "said" ? got.said[0] : got;
      }
      const request = { kind: "command" as const, shard, command, ...(waitMs === undefined ? {} : { waitMs }) };
      return await way.request(request, { deadlineMs });
    } catch (error) {
      if (isFault(error)) return undefined;
      throw error;
    }
  }

  async #reserveLoop(): Promise<void> {
    const { random } = this.ports;
    const { slots, shards, name, offers, waitMs } = this.habits;
    let shard = random.below(shards);
    for (;;) {
      const free = slots - this.#busy;
      if (free <= 0) {
        await this.#clock.sleep(200 + random.below(300));
        continue;
      }
      shard = random.chance(0.5) ? random.below(shards) : (shard + 1) % shards;
      const command: CommandOf<"reserve"> = {
        kind: "reserve",
        executor: name,
        offers,
        prefer: random.chance(0.3) ? [`host-${random.below(3)}`] : [],
        count: 1 + random.below(free),
        start: random.chance(0.5) ? "pure" : random.chance(0.5),
        nonce: `${this.ports.life.number}-${(this.#nonce += 1)}`,
        ...(random.chance(0.1) ? { tenant: "tenant-0" } : {}),
      };
      const sentMono = this.#clock.monotonicMs();
      const got = await this.ask(shard, command, 8_000 + waitMs, waitMs);
      if (got?.kind !== "reply") {
        await this.#clock.sleep(100 + random.below(400));
        continue;
      }
      const { grants } = got.reply as Replies["reserve"];
      for (const grant of grants) void this.#handle(shard, grant, isStarted(grant, command), sentMono);
      if (grants.length === 0 && waitMs === 0) await this.#clock.sleep(300 + random.below(500));
    }
  }

  async #renewLoop(): Promise<void> {
    for (;;) {
      const leases = [...this.held.values()].map(({ grant }) => grant.leaseMs);
      await this.#clock.sleep(Math.min(6_000, ...leases) / 3);
      const shards = new Set([...this.held.values()].map(({ shard }) => shard));
      for (const shard of shards) void this.#renew(shard);
    }
  }

  async #renew(shard: number): Promise<void> {
    const mine = [...this.held.values()].filter((held) => held.shard === shard && held.renewed);
    if (mine.length === 0) return;
    const sentMono = this.#clock.monotonicMs();
    const claims = mine.map(({ grant: { task, token }, heard }) => ({ task, token, ...(heard > 0 && { heard }) }));
    const got = await this.ask(shard, { kind: "renew", executor: this.habits.name, claims }, 5_000);
    if (got?.kind !== "reply") return;
    const { held, lost } = got.reply as Replies["renew"];
    for (const { task, token, leaseMs, cancelling, signals } of held) {
      const known = this.held.get(nameOf(shard, task, token));
      if (!known) continue;
      known.untilMono = Math.max(known.untilMono, sentMono + leaseMs);
      known.heard = Math.max(known.heard, signals?.at(-1)?.number ?? 0);
      if (cancelling) known.stop.abort(new Error("cancelled"));
    }
    for (const { task, token } of lost) this.held.get(nameOf(shard, task, token))?.stop.abort(new Error("lost"));
  }

  async #handle(shard: number, grant: Grant, started: boolean, sentMono: number): Promise<void> {
    const name = nameOf(shard, grant.task, grant.token);
    // A repeated grant is not run again.
    if (this.held.has(name)) return;
    const untilMono = sentMono + grant.leaseMs;
    const held: Held = { shard, grant, untilMono, stop: new AbortController(), renewed: true, heard: 0 };
    this.held.set(name, held);
    this.#busy += 1;
    try {
      if (!(await misbehave(this, held))) await this.#attempt(held, started);
    } finally {
      this.#busy -= 1;
      this.held.delete(name);
    }
  }

  async #attempt(held: Held, started: boolean): Promise<void> {
    const { shard, grant } = held;
    const { task, token } = grant;
    const executor = this.habits.name;
    if (!started) {
      const sentMono = this.#clock.monotonicMs();
      const got = await this.ask(shard, { kind: "start", executor, task, token });
      if (got?.kind !== "reply") return;
      const { leaseMs } = got.reply as Replies["start"];
      held.untilMono = Math.max(held.untilMono, sentMono + leaseMs);
      // The request may have been held for longer than the lease: then ask the shard whether the claim is still live.
    } else if (this.#clock.monotonicMs() >= held.untilMono) await this.#renew(shard);
    if (grant.planning) {
      const plan = await planFor(this, held);
      if (this.ports.random.chance(0.3)) await this.#clock.sleep(this.ports.random.below(3_000));
      if (plan) await this.ask(shard, { kind: "record-plan", executor, task, token, plan });
      return;
    }
    const script = readTask(grant.spec);
    if (script.checkpoints > 0) void this.checkpoint(held);
    const end = await this.run(held, script.runMs);
    if (end !== "done") {
      if (end === "cancelled" || end === "expired") await this.#stopped(held, end);
      return;
    }
    if (grant.attempt <= script.failures) {
      const left = script.leaves > 0 ? await this.left(held, script.leaves) : {};
      await this.ask(shard, {
        kind: "fail",
        executor,
        task,
        token,
        reason: script.reason,
        message: "as scripted",
        ...left,
      });
      return;
    }
    await this.commit(held, script.outputs);
  }

  /** Some give the task back instead, with where they have got. */
  async #stopped(held: Held, why: string): Promise<void> {
    const { shard, grant } = held;
    const claim = { executor: this.habits.name, task: grant.task, token: grant.token };
    if (this.ports.random.chance(0.2)) {
      await this.ask(shard, { kind: "release", ...claim, ...(await this.got(held, 1)) });
      return;
    }
    const left = this.ports.random.chance(0.3) ? await this.left(held, 1) : {};
    await this.ask(shard, { kind: "fail", ...claim, reason: "cancelled", message: `stopped: ${why}`, ...left });
  }

  async left({ shard, grant }: Held, count: number) {
    const digests = await makeOutputs(this.ports.blobs, `left by ${shard}/${grant.task}/${grant.token}`, count);
    return { result: { payload: `left by ${grant.token}`, digests }, evidence: { digests: [], pinnedForMs: 0 } };
  }

  /** How far it has got, as a checkpoint. */
  async got({ shard, grant }: Held, count: number) {
    const digests = await makeOutputs(this.ports.blobs, `got by ${shard}/${grant.task}/${grant.token}`, count);
    const payload = `got by ${grant.token}, ${(this.#got += 1)}`;
    return { checkpoint: { payload, digests }, evidence: { digests: [], pinnedForMs: 0 } };
  }

  async checkpoint(held: Held): Promise<void> {
    const { shard, grant } = held;
    const claim = { executor: this.habits.name, task: grant.task, token: grant.token };
    const got = await this.got(held, this.ports.random.below(2));
    await this.ask(shard, { kind: "checkpoint", ...claim, ...got }, 3_000);
    if (this.ports.random.chance(0.2)) await this.ask(shard, { kind: "checkpoint", ...claim, ...got }, 3_000);
  }

  /** Runs for this long, as long as the lease allows. */
  async run(held: Held, runMs: number, rogue = false): Promise<"done" | "cancelled" | "lost" | "expired"> {
    const { shard, grant } = held;
    const { life, runs } = this.ports;
    const graceMs = grant.effects === "outside" ? -marginMsOf(grant.leaseMs) : grant.graceMs;
    // The grant may have been delayed for too long.
    if (!rogue && this.#clock.monotonicMs() >= held.untilMono + graceMs) return "expired";
    const isStopped = () => held.stop.signal.aborted;
    const over = runs.begin({ shard, grant, life, sinceMs: life.machine.world.nowMs, rogue, isStopped });
    const doneMono = this.#clock.monotonicMs() + runMs;
    try {
      for (;;) {
        const nowMono = this.#clock.monotonicMs();
        const lastMono = rogue ? Number.POSITIVE_INFINITY : held.untilMono + graceMs;
        if (nowMono >= lastMono) return "expired";
        if (nowMono >= doneMono) return "done";
        await this.#clock.sleep(Math.min(doneMono, lastMono) - nowMono, rogue ? undefined : held.stop.signal);
        if (this.ports.random.chance(0.2)) void this.report(held);
        if (!grant.planning && readTask(grant.spec).checkpoints > 0 && this.ports.random.chance(0.5))
          void this.checkpoint(held);
      }
    } catch (error) {
      return error instanceof Error && error.message === "lost" ? "lost" : "cancelled";
    } finally {
      over();
    }
  }

  async report({ shard, grant: { task, token } }: Held): Promise<void> {
    const count = this.ports.random.between(1, 5);
    const steps = Array.from({ length: count }, (_, step) => ({ step, name: "work", status: "progress" as const }));
    await this.ask(shard, { kind: "report", executor: this.habits.name, task, token, steps }, 3_000);
  }

  async commit(held: Held, outputs: number): Promise<Settled | undefined> {
    const { shard, grant } = held;
    const { task, token } = grant;
    // What is made again comes out the same, or does not.
    const version = grant.generation > 1 && this.ports.random.chance(0.5) ? grant.generation : 1;
    const digests = await makeOutputs(this.ports.blobs, `${shard}/${task}/${version}`, outputs);
    const said = { payload: `ran as ${token}`, digests };
    const result = readTask(grant.spec).publish ? { ...said, publish: publishOf(shard, grant) } : said;
    const evidence = { digests: [], pinnedForMs: 0 };
    const got = await this.ask(
      shard,
      { kind: "commit", executor: this.habits.name, task, token, result, evidence },
      60_000,
    );
    // Evicted between the upload and the pin: upload again, once.
    if (got?.kind !== "rejected" || got.rejection.kind !== "evidence-missing") return got;
    await makeOutputs(this.ports.blobs, `${shard}/${task}/${grant.generation}`, outputs);
    return this.ask(shard, { kind: "commit", executor: this.habits.name, task, token, result, evidence }, 60_000);
  }
}

export const nameOf = (shard: number, task: number, token: number): string => `${shard}/${task}/${token}`;

const isStarted = ({ effects }: Grant, { start }: CommandOf<"reserve">): boolean =>
  start === "pure" ? effects === "pure" : start;
