/**
 * One service on one machine: follows its goal, stages, switches, probes, and goes back by itself when the new version
 * does not answer. Everything that matters is on disk before it counts, so that kill -9 at any point leaves the old
 * version or the new one.
 */
import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { Goal, openGoal, refuseGoal, type SignedGoal } from "#doors/deploy/goal/goal.ts";
import type { MachineState } from "#doors/deploy/health/judge.ts";
import { manifestSizeBytes, parseManifest, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { Filler } from "#doors/deploy/delta/fill.ts";
import type { Older } from "#doors/deploy/delta/rebuild.ts";
import type { AgentSwarm } from "#doors/deploy/swarm/agent-swarm.ts";
import type { KeyRing, Signed } from "#doors/deploy/signing/signing.ts";
import { readIfThere, switchLink, writeDurably } from "./durable-files.ts";
import { failureKey, nextStep, type Step } from "./machine.ts";
import { Patience } from "./patience.ts";
import { ServiceProcess } from "./service-process.ts";
import type { HandOver } from "./installed/program.ts";
import { stage, stagedHashes, versionFolder, type SegmentSource } from "./stage.ts";
import { answersInTime } from "./starting.ts";
import { collect, makeRoom, stagedOf, type Keep } from "./versions.ts";

export type ServiceStatus = {
  readonly service: string;
  readonly region: string;
  readonly goalVersion: number;
  readonly release: string | null;
  readonly state: MachineState | "idle";
  /** The manifest that answers. */
  readonly running: string | null;
  readonly why: string;
};

export type ServicePorts = {
  readonly machine: string;
  readonly labels: readonly string[];
  readonly service: string;
  readonly region: string;
  /** The service's folder on this machine. */
  readonly folder: string;
  readonly ring: Pick<KeyRing, "open">;
  readonly clock: Clock;
  readonly manifest: (digest: Digest) => Promise<Signed>;
  readonly segment: SegmentSource;
  /** Left out: all bytes come from a node. */
  readonly swarm?: Pick<AgentSwarm, "fill" | "keep" | "withdraw"> | undefined;
  /** The service is this agent itself: another program takes over. */
  readonly handOver?: HandOver | undefined;
  readonly log: (line: string) => void;
  readonly changed: (status: ServiceStatus) => void;
};

type Remembered = { readonly good?: string | undefined; readonly failed: readonly string[] };

const failuresMax = 100;
/** A process that ends sooner than this after its start is in a crash loop, whatever its probe said meanwhile. */
const steadyMs = 10_000;

const isText = (value: string | null | undefined): value is string => typeof value === "string";

export class ServiceAgent {
  readonly #ports: ServicePorts;
  readonly #process: ServiceProcess;
  readonly #filler: Filler;
  #goal: SignedGoal | undefined;
  #memory: Remembered;
  #status: ServiceStatus;
  readonly #patience = new Patience();
  #staging: { readonly manifest: string; readonly stop: AbortController } | undefined;
  #restartAtMs = 0;
  #restarts = 0;
  #startedMonoMs = 0;
  #loopUntilMs = 0;

  private constructor(ports: ServicePorts, process: ServiceProcess, goal: SignedGoal | undefined, memory: Remembered) {
    this.#ports = ports;
    this.#process = process;
    this.#filler = new Filler({ ...ports, packs: join(ports.folder, "packs") });
    this.#goal = goal;
    this.#memory = memory;
    this.#status = this.#statusNow("idle", "the agent has just started");
  }

  static async open(ports: ServicePorts): Promise<ServiceAgent> {
    await mkdir(join(ports.folder, "versions"), { recursive: true });
    const goalText = await readIfThere(join(ports.folder, "goal.json"));
    const memoryText = await readIfThere(join(ports.folder, "memory.json"));
    const goal = goalText === undefined ? undefined : keptGoal(JSON.parse(goalText) as Signed);
    const memory = memoryText === undefined ? { failed: [] } : (JSON.parse(memoryText) as Remembered);
    const agent = new ServiceAgent(ports, await ServiceProcess.adopt(ports.folder), goal, memory);
    await agent.#serve();
    return agent;
  }

  get status(): ServiceStatus {
    return this.#status;
  }

  /** The goal, if it is a halt: others may ask for it. */
  get halt(): Signed | undefined {
    return this.#goal?.goal.halted === true ? this.#goal.signed : undefined;
  }

  /** Verifies a goal and keeps it. Answers with the reason when it is refused. */
  async take(signed: Signed): Promise<string | undefined> {
    const offered = openGoal(signed, this.#ports.ring);
    const wasHalted = this.#goal?.goal.halted === true;
    const refused = refuseGoal(this.#goal, offered, this.#ports);
    if (refused !== undefined) return refused;
    await writeDurably(join(this.#ports.folder, "goal.json"), JSON.stringify(signed));
    this.#goal = offered;
    if (this.#staging && !this.#wanted.includes(this.#staging.manifest))
      this.#staging.stop.abort(new Fault("stale", "stage release", { why: "a newer goal wants another one" }));
    if (offered.goal.halted) this.#hush();
    else if (wasHalted) await this.#serve();
    return undefined;
  }

  /** Does the next thing, if there is one. Answers whether it did something. */
  async step(): Promise<boolean> {
    if (await this.#isOnTrial()) return false;
    await this.#keepRunning();
    const next = nextStep({
      machine: this.#ports.machine,
      labels: this.#ports.labels,
      goal: this.#counting,
      staged: await stagedOf(this.#versions, this.#wanted),
      running: this.#memory.good,
      failed: new Set(this.#memory.failed),
    });
    if (next.kind === "idle") {
      this.#settle(next.why);
      return false;
    }
    const about = `${next.kind} ${next.manifest} ${this.#goal?.goal.version}`;
    if (!this.#patience.mayTry(about, this.#ports.clock.monotonicMs())) return false;
    try {
      await this.#carryOut(next);
      this.#patience.succeeded();
      return true;
    } catch (error) {
      this.#patience.failed(about, this.#ports.clock.monotonicMs());
      await this.#failed(next, error);
      return false;
    }
  }

  async stop(): Promise<void> {
    const manifest = this.#process.running;
    if (manifest !== undefined) await this.#process.stop((await this.#manifestOf(manifest, true)).run.drainMs);
  }

  async #carryOut(next: Exclude<Step, { kind: "idle" }>): Promise<void> {
    const manifest = await this.#manifestOf(next.manifest);
    if (next.kind === "stage") {
      this.#say("staging", `fetches ${next.manifest.slice(0, 12)}`);
      const { segment, swarm } = this.#ports;
      const stop = new AbortController();
      const { signal } = stop;
      this.#staging = { manifest: next.manifest, stop };
      const isRollback = this.#goal?.goal.kind === "rollback";
      const keep = this.#keep(manifest.run);
      await makeRoom(this.#versions, manifestSizeBytes(manifest), keep);
      const about = { digest: next.manifest, manifest, older: await this.#older(), isRollback, signal };
      const fill = async (folder: string) => await this.#filler.fill(folder, about);
      const folder = await stage(this.#versions, next.manifest, manifest, segment, { fill, signal });
      swarm?.keep(next.manifest, manifest, folder);
      this.#say("staged", `${next.manifest.slice(0, 12)} is complete`);
      await collect(this.#versions, keep);
    } else await this.#activate(next.manifest, manifest);
  }

  /** While a halt stands nothing is fetched, and nothing of the release is given to others (AG3). */
  #hush(): void {
    this.#staging?.stop.abort(new Fault("stale", "stage release", { why: "the service is halted" }));
    for (const manifest of this.#wanted) this.#ports.swarm?.withdraw(manifest);
    this.#filler.hush();
  }

  /** Gives others what is complete here: after a start, and when a halt is over. */
  async #serve(): Promise<void> {
    const { swarm } = this.#ports;
    if (!swarm || this.#goal?.goal.halted === true) return;
    const wanted = [...new Set(this.#wanted)];
    for (const digest of await stagedOf(this.#versions, wanted)) {
      const folder = versionFolder(this.#versions, digest);
      const kept = await readIfThere(`${folder}.json`);
      if (kept !== undefined) swarm.keep(digest, parseManifest((JSON.parse(kept) as Signed).body), folder);
    }
  }

  /** Its key may be revoked by now: nothing is begun then, and only a newer one is taken. */
  get #counting(): Goal | undefined {
    const { ring } = this.#ports;
    try {
      return this.#goal && openGoal(this.#goal.signed, ring).goal;
    } catch (error) {
      if (isFault(error, "invalid")) return undefined;
      throw error;
    }
  }

  /** The releases that are complete on this machine, in no order. */
  async #older(): Promise<readonly Older[]> {
    const found: Older[] = [];
    for (const name of await stagedHashes(this.#versions)) {
      const kept = await readIfThere(join(this.#versions, `${name}.json`));
      if (kept === undefined) continue;
      const { body } = JSON.parse(kept) as Signed;
      found.push({ manifest: parseManifest(body), folder: join(this.#versions, name) });
    }
    return found;
  }

  /** Old process out, link over, new process in; the old version again when the new one does not answer. */
  async #activate(digest: Digest, manifest: Manifest): Promise<void> {
    const old = this.#memory.good;
    this.#say("activating", `starts ${digest.slice(0, 12)}`);
    if (this.#ports.handOver)
      return await this.#ports.handOver.begin(digest, versionFolder(this.#versions, digest), manifest.run);
    await this.stop();
    const problem = await this.#runs(digest, manifest);
    if (problem === undefined) {
      await this.#remember({ good: digest });
      this.#say("healthy", "the new version answers");
      return;
    }
    await this.#process.stop(0);
    await this.#rememberFailure(digest);
    if (old !== undefined) {
      const back = await this.#runs(old, await this.#manifestOf(old, true));
      this.#say("reverted", `${problem}; ${back === undefined ? "the old version runs again" : `and back: ${back}`}`);
    } else this.#say("failed", problem);
  }

  /** What became of the version that an earlier process made room for. Answers whether that is still open. */
  async #isOnTrial(): Promise<boolean> {
    const { handOver } = this.#ports;
    if (!handOver) return false;
    const { runs, isOnTrial, failed } = await handOver.outcome();
    if (isOnTrial) {
      this.#say("activating", "the new agent has yet to answer to a node");
      return true;
    }
    if (runs !== this.#memory.good) await this.#remember({ good: runs });
    if (failed === undefined) return false;
    if (failed === this.#goal?.goal.manifest) {
      await this.#rememberFailure(failed);
      this.#say("reverted", "the new agent did not stay; this one runs again");
    }
    await handOver.settled();
    return false;
  }

  /** Switches to a version and starts it. Answers with what is wrong when it does not answer in time. */
  async #runs(digest: Digest, { run }: Manifest): Promise<string | undefined> {
    const folder = versionFolder(this.#versions, digest);
    await switchLink(join(this.#ports.folder, "current"), join("versions", basename(folder)));
    try {
      await this.#process.start(digest, folder, run);
    } catch (error) {
      return (error as Error).message;
    }
    this.#startedMonoMs = this.#ports.clock.monotonicMs();
    return await answersInTime({ run, folder, clock: this.#ports.clock, isAlive: () => this.#process.isAlive });
  }

  /** What was good stays up: after a reboot, and when it ends by itself, with growing pauses. */
  async #keepRunning(): Promise<void> {
    if (this.#ports.handOver) return;
    await this.#process.trimLog();
    const { good } = this.#memory;
    if (good === undefined || this.#process.isAlive) return;
    if (this.#ports.clock.monotonicMs() < this.#restartAtMs) return;
    const aliveMs = this.#ports.clock.monotonicMs() - this.#startedMonoMs;
    const isLoop = this.#startedMonoMs > 0 && aliveMs < steadyMs;
    this.#restarts = isLoop ? this.#restarts + 1 : 0;
    if (isLoop) this.#loopUntilMs = this.#ports.clock.monotonicMs() + 2 * steadyMs;
    this.#restartAtMs = this.#ports.clock.monotonicMs() + Math.min(60_000, 500 * 2 ** Math.min(10, this.#restarts));
    const problem = await this.#runs(good, await this.#manifestOf(good, true));
    if (problem !== undefined) this.#say("failed", problem);
    else if (isLoop) this.#say("failed", `it ended by itself ${Math.round(aliveMs / 1_000)} s after its start`);
    else this.#say("healthy", "restarted");
  }

  async #failed(next: Exclude<Step, { kind: "idle" }>, error: unknown): Promise<void> {
    // The network comes back and disks are cleaned: only bytes or versions that are wrong are not tried again.
    const isFinal = error instanceof Fault && (error.code === "invalid" || error.code === "corrupt");
    if (isFinal) await this.#rememberFailure(next.manifest);
    const isFull = error instanceof Fault && error.code === "exhausted";
    // Trouble on the way is not trouble of the version: a fetch that is tried again counts as still fetching.
    const isUnderWay = next.kind === "stage" && !isFinal && !isFull;
    this.#say(isUnderWay ? "staging" : "failed", (error as Error).message);
  }

  #settle(why: string): void {
    const { good } = this.#memory;
    const { state } = this.#status;
    const wants = this.#goal?.goal.manifest;
    const isSameRelease = this.#status.release === (this.#goal?.goal.release ?? null);
    const isLooping = this.#ports.clock.monotonicMs() < this.#loopUntilMs;
    if (state === "reverted" && isSameRelease) return this.#say(state, this.#status.why);
    if (state === "failed" && (isLooping || (isSameRelease && good !== wants)))
      return this.#say(state, this.#status.why);
    if (good !== undefined && good === wants && this.#running === good) this.#say("healthy", why);
    else this.#say("idle", why);
  }

  #say(state: ServiceStatus["state"], why: string): void {
    const now = this.#statusNow(state, why);
    const isNews = JSON.stringify(now) !== JSON.stringify(this.#status);
    this.#status = now;
    if (isNews) this.#ports.changed(now);
  }

  #statusNow(state: ServiceStatus["state"], why: string): ServiceStatus {
    const { service, region } = this.#ports;
    const goal = this.#goal?.goal;
    return {
      service,
      region,
      goalVersion: goal?.version ?? 0,
      release: goal?.release ?? null,
      state,
      running: this.#running ?? null,
      why,
    };
  }

  /**
   * Verified, whether it comes from the disk or from a node; but what ran already was verified then, and a key that is
   * revoked takes no service down.
   */
  async #manifestOf(digest: Digest, hasRun = false): Promise<Manifest> {
    const path = join(this.#versions, `${basename(versionFolder(this.#versions, digest))}.json`);
    const kept = await readIfThere(path);
    const signed = kept === undefined ? await this.#ports.manifest(digest) : (JSON.parse(kept) as Signed);
    const isKnown = hasRun && kept !== undefined;
    const manifest = parseManifest(isKnown ? signed.body : this.#ports.ring.open(signed, "manifest"));
    if (manifest.service !== this.#ports.service)
      throw new Fault("invalid", "read manifest", { service: manifest.service, wants: this.#ports.service });
    if (kept === undefined) await writeDurably(path, JSON.stringify(signed));
    return manifest;
  }

  get #keep(): (run: Manifest["run"]) => Keep {
    const inUse = [...this.#wanted, this.#running].filter(isText);
    return ({ keepVersions, diskBytesMax }) => ({ countMax: keepVersions, bytesMax: diskBytesMax, inUse });
  }

  async #rememberFailure(digest: string): Promise<void> {
    const goal = this.#goal?.goal;
    if (!goal) return;
    await this.#remember({ failed: [...this.#memory.failed, failureKey(goal, digest)].slice(-failuresMax) });
  }

  async #remember(change: Partial<Remembered>): Promise<void> {
    this.#memory = { ...this.#memory, ...change };
    await writeDurably(join(this.#ports.folder, "memory.json"), JSON.stringify(this.#memory));
  }

  get #wanted(): readonly string[] {
    const goal = this.#goal?.goal;
    const pinned = goal?.pins?.map(({ manifest }) => manifest) ?? [];
    return [goal?.manifest, goal?.stable, this.#memory.good, ...pinned].filter(isText);
  }

  get #running(): string | undefined {
    return this.#ports.handOver ? this.#memory.good : this.#process.running;
  }

  get #versions(): string {
    return join(this.#ports.folder, "versions");
  }
}

/** It was verified when it was taken; whether its key still counts is asked whenever it is followed. */
const keptGoal = (signed: Signed): SignedGoal => ({ signed, goal: Goal.parse(JSON.parse(signed.body)) });
