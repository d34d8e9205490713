/**
 * Runs of a long workflow on runners that are killed, or stopped past their lease and continued; their node is killed,
 * too. The next runner is always another machine as far as one computer can be two: another process, another folder.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createWorkerToken } from "#api/workers.ts";
import { decideEffect, listEffects } from "#api/effects.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { Random } from "#base/random.ts";
import { callEndpoint } from "#http/client.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { RegisteredProcess } from "#e2e/elsewhere/worker-process.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { Outside } from "./outside.ts";
import { effectsOf, workflowFiles } from "./workflow.ts";

export const cruelties = ["kill the runner", "stop the runner past its lease", "kill the node"] as const;
export type Cruelty = (typeof cruelties)[number];

export type KillPlan = {
  readonly steps: number;
  /** One after the other, in as many runs as it takes. */
  readonly cruelties: readonly Cruelty[];
  readonly seed: number;
  readonly note?: (line: string) => void;
  /** No further run begins after this; left out: all are done. */
  readonly forMs?: number;
};

const leaseMs = 3_000;
const eachRunMax = 8;

/** How many of them were done; the runs that they were done to ended right. */
export async function playKills({ steps, cruelties: all, seed, note, forMs = Infinity }: KillPlan): Promise<number> {
  const random = new Random(seed);
  const untilMono = performance.now() + forMs;
  await using site = await KillSite.open(steps);
  let done = 0;
  while (done < all.length && performance.now() < untilMono) {
    done += await site.play(all.slice(done, done + eachRunMax), random, note ?? (() => {}));
    note?.(`${done} of ${all.length}`);
  }
  return done;
}

class KillSite implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly #outside: Outside;
  readonly #steps: number;
  readonly #node: NodeProcess;
  readonly #ci: CiNode;
  readonly #runners: RegisteredProcess[] = [];
  #now = 0;

  static async open(steps: number): Promise<KillSite> {
    const outside = await Outside.open();
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-kills-"));
    const ci = { labels: ["near"], runnerLease: `${leaseMs}ms` };
    const node = await NodeProcess.open(folder, { worker: { slots: 1 }, cluster: { shards: 1 }, ci });
    const site = new KillSite(outside, steps, node, folder);
    await site.#begin();
    return site;
  }

  private constructor(outside: Outside, steps: number, node: NodeProcess, folder: string) {
    this.#outside = outside;
    this.#steps = steps;
    this.#node = node;
    this.#ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
    this.#stack.defer(() => clearAway(folder));
    this.#stack.use(node);
    this.#stack.defer(() => outside.close());
  }

  async #begin(): Promise<void> {
    const repository = this.#stack.use(new TestRepository(workflowFiles(this.#outside.url, this.#steps)));
    await this.#ci.register("mill/flour", repository.folder);
    const body = { labels: ["door=ci", "isolation=sandbox", "runner=*"], uses: 2 };
    const { token } = await callEndpoint(this.#ci.fetch, createWorkerToken, { body });
    for (const name of ["one", "two"]) {
      const data = mkdtempSync(join(tmpdir(), `millrace-kills-${name}-`));
      this.#stack.defer(() => clearAway(data));
      const args = ["--server", `http://${this.#node.address}`, "--data", data, "--labels", "far"];
      this.#runners.push(this.#stack.use(new RegisteredProcess(token, args, "runner")));
    }
    await this.#runner.start().isUp();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  get #runner(): RegisteredProcess {
    const found = this.#runners[this.#now % this.#runners.length];
    if (!found) throw new Error("there are no runners");
    return found;
  }

  /** One run, and as many of these as it is long enough for. */
  async play(all: readonly Cruelty[], random: Random, note: (line: string) => void): Promise<number> {
    const outside = this.#outside;
    outside.begun.length = outside.posts.length = 0;
    outside.counts.clear();
    outside.keys.clear();
    const run = await this.#ci.dispatch("mill/flour", "kills");
    const over = new AbortController();
    const deciding = this.#decide(run, over.signal);
    let done = 0;
    try {
      for (const cruelty of all) {
        const begins = outside.begun.length + random.below(3);
        await this.#until(`steps begin`, run, () => outside.begun.length > begins);
        await pause(random.below(1_200));
        if (outside.posts.length > 0) break; // the run is as good as over
        note(`${cruelty} at step ${outside.begun.at(-1)}`);
        await this.#do(cruelty, run);
        done += 1;
      }
      const shown = await this.#ci.ended(run, 240_000);
      equal(shown.conclusion, "success", await this.#ci.log(run, "long").catch(String));
      await this.#judge(run, done);
      return done;
    } finally {
      over.abort();
      await deciding;
    }
  }

  async #until(what: string, run: string, holds: () => boolean): Promise<void> {
    const isOver = async () => (await this.#ci.show(run).catch(() => undefined))?.status === "completed";
    await until(what, async () => holds() || (await isOver()), { limitMs: 120_000, everyMs: 50 });
  }

  async #do(cruelty: Cruelty, run: string): Promise<void> {
    const victim = this.#runner;
    switch (cruelty) {
      case "kill the node":
        await this.#node.kill();
        await this.#node.start();
        return;
      case "kill the runner":
        await victim.end("SIGKILL");
        this.#now += 1;
        await this.#runner.start().isUp();
        return;
      default: {
        victim.signal("SIGSTOP");
        this.#now += 1;
        await this.#runner.start().isUp();
        const from = this.#outside.begun.length;
        await this.#until("another goes on", run, () => this.#outside.begun.length > from);
        victim.signal("SIGCONT");
        await pause(500); // what it would do now, it does at once
        await victim.end("SIGKILL");
      }
    }
  }

  /** A person who looks at the world and says what is so. */
  async #decide(run: string, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await pause(200);
      const query = { prefix: `job/${run}/`, undecided: "true" as const, limit: 50 };
      const page = await callEndpoint(this.#ci.fetch, listEffects, { query }).catch(() => undefined);
      for (const { key, begins } of page?.items ?? []) {
        const place = Number(/__run_(\d+)/.exec(key)?.[1] ?? 1) - 1;
        const body = { wasDone: this.#outside.wasDone(String(place)), begins };
        await callEndpoint(this.#ci.fetch, decideEffect, { params: { key }, body }).catch(() => undefined);
      }
    }
  }

  async #judge(run: string, kills: number): Promise<void> {
    const { begun, counts, keys, posts } = this.#outside;
    const steps = Array.from({ length: this.#steps }, (_, n) => n);
    deepEqual(
      begun,
      begun.toSorted((a, b) => a - b),
      "no step begins again after a later one has begun",
    );
    deepEqual([...new Set(begun)], steps, "all steps ran");
    ok(begun.length <= this.#steps + kills, `${begun.length} beginnings of ${this.#steps} steps, ${kills} kills`);
    const { keyed, probed, asked } = effectsOf(this.#steps);
    for (const n of keyed) equal(keys.get(String(n))?.size, 1, `the effect ${n} has one key in all attempts`);
    for (const n of [...probed, ...asked]) equal(counts.get(String(n)), 1, `the effect ${n} was done once`);
    ok(posts.length > 0 && posts.every((word) => word === "remembered"), posts.join());
    const text = await this.#ci.log(run, "long");
    for (const n of steps.slice(1)) ok(text.includes(`tell ${n};`), `the log has step ${n}`);
  }
}
