/**
 * A query on many executors without any process: the kernel, the door's planning and its documents are the real ones;
 * executors, packs and time are made up. Executors vanish, sleep through their leases and commit late; packs are lost,
 * and some come out otherwise when they are written again. In the end every pack that the answer depends on must have
 * been read by all of its readers in the same form.
 */
import { createHash } from "node:crypto";
import type { Random } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Digest } from "#base/digest.ts";
import { answer } from "#kernel/read/answer.ts";
import type { JobView, PlanInputs } from "#kernel/read/query.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";
import { encodeDocument, type PlanDocument, type TaskResult, type TaskSpec } from "#doors/batch/documents.ts";
import { engineLabel, kinds, planLabel, planSubmit, taskLabel, type BatchJob } from "#doors/batch/plan.ts";
import { planWave } from "#doors/batch/plan-wave.ts";
import { Documents } from "#doors/batch/run/documents-cache.ts";
import { askAgain, packsOf } from "#doors/batch/run/inputs.ts";
import { readsOf } from "#doors/batch/standing.ts";
import { sha256Digest } from "#blobs/sha256.ts";

export type WorldOptions = {
  readonly plan: PlanDocument;
  readonly blobs: BlobStore;
  readonly random: Random;
  readonly executors: number;
  readonly faults: {
    /** Shares of all attempts. */
    readonly dies: number;
    readonly sleeps: number;
    /** In each half second: how likely a pack is lost. */
    readonly isLost: number;
    /** Then packs stay, and the query has to end. */
    readonly lostMax: number;
    /** Of packs that are written again. */
    readonly differs: number;
  };
  /** What planners are told, in place of the truth: for mutants. */
  readonly told?: (results: PlanInputs["results"]) => PlanInputs["results"];
};

type Running = { readonly grant: Grant; readonly executor: string; readonly doneAtMs: number; readonly dies: boolean };
type Written = { readonly result: TaskResult; readonly read: ReadonlyMap<string, readonly Digest[]> };

export type WorldReport = {
  readonly phase: string;
  readonly commits: number;
  readonly refused: number;
  readonly lost: number;
  readonly differing: number;
  readonly simulatedMs: number;
  /** Readers of the answer's packs that read another form of one than the others did. */
  readonly mixed: readonly string[];
};

const offers = [taskLabel, engineLabel, planLabel].toSorted();
const stepMs = 500;
const renewMs = 3_000;

export class QueryWorld {
  readonly #options: WorldOptions;
  readonly #state: State = createState(0, { ...defaultLimits, stateBytesMax: 8 * 1024 ** 3 });
  readonly #documents = new Documents();
  readonly #running = new Set<Running>();
  readonly #packs = new Set<Digest>();
  readonly #read = new Set<Digest>();
  /** By stage and part: what was committed last. */
  readonly #written = new Map<string, Written>();
  readonly #counts = { commits: 0, refused: 0, lost: 0, differing: 0 };
  #nowMs = 1_000_000;
  #nonces = 0;
  #names = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
  }

  async run(): Promise<WorldReport> {
    const { plan, blobs } = this.#options;
    const bytes = encodeDocument(plan);
    const digest = sha256Digest(bytes);
    await blobs.write(digest, bytes);
    const job: BatchJob = { sql: plan.sql, folder: "/", settings: plan.settings, isExplained: false, fresh: true };
    const { shardKey: _shard, whenEnded: _told, ...order } = planSubmit(job, { tenant: "t", unique: "u" });
    const { job: no } = this.#ask<Replies["submit"]>({ kind: "submit", ...order });
    const executors = Array.from({ length: this.#options.executors }, () => `e${(this.#names += 1)}`);
    for (let round = 0; round < 100_000; round += 1) {
      const phase = this.#phase(no);
      if (phase !== "RUNNING") return this.#report(phase);
      this.#nowMs += stepMs;
      while (this.#ask<Replies["tick"]>({ kind: "tick" }).more);
      await this.#finish(digest, executors);
      this.#lose();
      this.#renew();
      this.#reserve(executors);
    }
    return this.#report("RUNNING");
  }

  #phase(job: number): string {
    const told = answer(this.#state, { kind: "job", job, tasksMax: 1 }, this.#nowMs);
    if (!told.ok) throw new Error(`the job is gone: ${JSON.stringify(told.rejection)}`);
    const { phase, stages } = told.answer as JobView;
    const failed = stages.find((stage) => stage.phase === "FAILED");
    return failed ? `${phase}: ${failed.name}: ${failed.reason}` : phase;
  }

  #reserve(executors: string[]): void {
    const { random, faults } = this.#options;
    const busy = new Set([...this.#running].map(({ executor }) => executor));
    for (const [i, executor] of executors.entries()) {
      if (busy.has(executor)) continue;
      const nonce = `n${(this.#nonces += 1)}`;
      const wanted = { offers, prefer: [executor], count: 4, start: true, nonce } as const;
      const outcome = step(this.#state, { kind: "reserve", executor, ...wanted }, this.#nowMs);
      if (!outcome.ok) {
        executors[i] = `e${(this.#names += 1)}`; // drained, for what it did before
        continue;
      }
      const { grants } = outcome.reply as Replies["reserve"];
      if (grants.length === 0) return; // nothing for any of them
      for (const grant of grants) {
        const sleepsMs = random.chance(faults.sleeps) ? 60_000 : 0;
        const doneAtMs = this.#nowMs + random.between(200, 2_000) + sleepsMs;
        this.#running.add({ grant, executor, doneAtMs, dies: random.chance(faults.dies) });
      }
    }
  }

  /** Those that sleep and those that are dead renew nothing. */
  #renew(): void {
    if (this.#nowMs % renewMs !== 0) return;
    const claims = new Map<string, { task: number; token: number }[]>();
    for (const { executor, grant, dies, doneAtMs } of this.#running) {
      if (dies || doneAtMs > this.#nowMs + 5_000) continue;
      const own = claims.get(executor) ?? [];
      own.push({ task: grant.task, token: grant.token });
      claims.set(executor, own);
    }
    for (const [executor, own] of claims) this.#try({ kind: "renew", executor, claims: own });
  }

  async #finish(plan: Digest, executors: string[]): Promise<void> {
    for (const one of this.#running) {
      if (one.doneAtMs > this.#nowMs) continue;
      this.#running.delete(one);
      const { grant, executor } = one;
      if (one.dies) {
        const at = executors.indexOf(executor);
        if (at >= 0) executors[at] = `e${(this.#names += 1)}`;
        for (const other of this.#running) if (other.executor === executor) this.#running.delete(other);
      } else if (grant.kind === kinds.plan) this.#commit(one, JSON.stringify({ plan }), [plan]);
      else if (grant.planning) await this.#plan(one);
      else await this.#compute(one);
    }
  }

  async #plan({ grant, executor }: Running): Promise<void> {
    const { told = (results) => results, blobs } = this.#options;
    const { task, token } = grant;
    const results: PlanInputs["results"][number][] = [];
    let from: PlanInputs["next"];
    let inputs: PlanInputs;
    do {
      const page = answer(
        this.#state,
        { kind: "plan-inputs", task, token, limit: 10_000, ...(from && { from }) },
        this.#nowMs,
      );
      if (!page.ok) return; // its claim is another's now
      inputs = page.answer as PlanInputs;
      results.push(...inputs.results);
      from = inputs.next;
    } while (from);
    const ports = { blobs, documents: this.#documents, tenant: "t" };
    const plan = await planWave({ ...inputs, results: told(results) }, grant.stage, ports);
    const outcome = step(this.#state, { kind: "record-plan", executor, task, token, plan }, this.#nowMs);
    if (!outcome.ok && !outcome.rejection.kind.startsWith("token")) throw new Error(JSON.stringify(outcome.rejection));
  }

  async #compute(one: Running): Promise<void> {
    const { blobs, random, faults } = this.#options;
    const { grant, executor } = one;
    const { stage: digest, part } = JSON.parse(grant.spec) as TaskSpec;
    const by = { tenant: "t", blobs };
    const document = await this.#documents.stage(digest, by);
    const named = await packsOf(document, this.#documents, by);
    let isWhole = true;
    for (const { digests, producers } of named.values())
      for (const [i, pack] of digests.entries()) {
        const producer = producers[i];
        if (this.#packs.has(pack) || !producer) continue;
        isWhole = false;
        const isThere = async (): Promise<boolean> => this.#packs.has(pack);
        await askAgain(pack, producer, { invalidate: this.#invalidate, isThere });
      }
    const { task, token } = grant;
    if (!isWhole)
      return void this.#try({ kind: "fail", executor, task, token, reason: "input-lost", message: "a pack is lost" });
    const read = new Map([...named].map(([id, { digests }]) => [id, digests]));
    for (const digests of read.values()) for (const pack of digests) this.#read.add(pack);
    const { stage } = document;
    const differs = grant.generation > 1 && random.chance(faults.differs);
    const hash = createHash("sha256").update(`${stage.id} ${part} ${differs ? grant.token : ""}`);
    for (const digests of read.values()) hash.update(digests.join());
    const result: TaskResult = {
      stage: stage.id,
      about: stage.about,
      isResult: stage.output.kind === "result",
      part,
      pack: `${hash.digest("hex")}/1000`,
      rows: 10,
      bytes: 1_000,
      shares: stage.output.kind === "hash" ? "ff".repeat(stage.output.partitions) : "",
      cuts: [],
      cpuMs: 1,
      ...readsOf(named),
      by: { task: String(task), generation: grant.generation },
    };
    if (differs) this.#counts.differing += 1;
    if (!this.#commit(one, JSON.stringify(result), [result.pack])) return;
    this.#packs.add(result.pack);
    this.#written.set(`${stage.id} ${part}`, { result, read });
  }

  readonly #invalidate = async (taskId: string, generation: number, reason: string): Promise<number | undefined> => {
    const command = { kind: "invalidate", task: Number(taskId), generation, reason } as const;
    const outcome = step(this.#state, command, this.#nowMs);
    if (outcome.ok) return (outcome.reply as Replies["invalidate"]).generation;
    return outcome.rejection.kind === "generation-stale" ? outcome.rejection.current : undefined;
  };

  /** A pack that was read before: a later wave reads it again. */
  #lose(): void {
    const { random, faults } = this.#options;
    if (this.#counts.lost >= faults.lostMax || !random.chance(faults.isLost)) return;
    const read = [...this.#read].filter((pack) => this.#packs.has(pack));
    if (read.length === 0) return;
    this.#packs.delete(random.pick(read));
    this.#counts.lost += 1;
  }

  #commit({ grant, executor }: Running, payload: string, digests: readonly Digest[]): boolean {
    const { task, token } = grant;
    const evidence = { digests, pinnedForMs: 3_600_000 };
    const outcome = this.#try({ kind: "commit", executor, task, token, result: { payload, digests }, evidence });
    this.#counts[outcome ? "commits" : "refused"] += 1;
    return outcome;
  }

  #ask<T>(command: Command): T {
    const outcome = step(this.#state, command, this.#nowMs);
    if (!outcome.ok) throw new Error(`${command.kind} was refused: ${JSON.stringify(outcome.rejection)}`);
    return outcome.reply as T;
  }

  #try(command: Command): boolean {
    return step(this.#state, command, this.#nowMs).ok;
  }

  #report(phase: string): WorldReport {
    const mixed: string[] = [];
    const seen = new Set<string>();
    const visit = ({ result, read }: Written): void => {
      for (const [stage, packs] of read)
        for (const [part, pack] of packs.entries()) {
          const now = this.#written.get(`${stage} ${part}`);
          if (now?.result.pack !== pack)
            mixed.push(`${result.stage} ${result.part} read ${pack} of ${stage} ${part}, which is ${now?.result.pack}`);
          if (!now || seen.has(`${stage} ${part}`)) continue;
          seen.add(`${stage} ${part}`);
          visit(now);
        }
    };
    for (const one of this.#written.values()) if (one.result.isResult) visit(one);
    return { phase, ...this.#counts, simulatedMs: this.#nowMs - 1_000_000, mixed };
  }
}
