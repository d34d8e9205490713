/**
 * The CI door through a storm, in virtual time: runs of workflows with matrices, effects, approvals and concurrency
 * groups, on machines that are killed and that stand still past their leases, over a network that loses, delays and
 * repeats. Real are the kernel, router, worker, planners, gate, ledger, and what a checkpoint says; steps are acted.
 */
import { Random } from "#base/random.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { Effects } from "#effects/effects.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { askers } from "#shard/client/ask.ts";
import { executorClient } from "#shard/client/executor.ts";
import { gathering } from "#shard/client/gather.ts";
import { liveClaims } from "#shard/client/live-claims.ts";
import { createRouter } from "#shard/router/router.ts";
import { testCluster } from "#shard/testing/client.ts";
import { createWorker } from "#worker/create-worker.ts";
import { Deployments } from "#doors/ci/environments/deployments.ts";
import { Environments, EnvironmentRules } from "#doors/ci/environments/environments.ts";
import { reviewId, signals } from "#doors/ci/environments/gate.ts";
import { gate } from "#doors/ci/environments/waiting.ts";
import { kinds, planLabel, planRun, taskLabel } from "#doors/ci/plan.ts";
import { ciPlanners } from "#doors/ci/runs/planners.ts";
import { type RunRecord, storeRun } from "#doors/ci/runs/record.ts";
import { viewRun } from "#doors/ci/view.ts";
import { CiCourt, type CiViolation, type Tally } from "./court.ts";
import { jobRunner, tenant } from "./job.ts";
import { Machine, type Weather } from "./machine.ts";
import { drawWorkflow, type Drawn } from "./workflow.ts";

export type CiSeed = {
  readonly seed: number;
  readonly violation: CiViolation | undefined;
  readonly tally: Tally;
  readonly simulatedMs: number;
};

const repository = "mill/flour";
const machinesCount = 3;
const people = ["ada", "bob", "eve"];
const stormMs = 240_000;
const calmMs = 3 * 3_600_000;
const lookMs = 500;

export async function runCiSeed(seed: number): Promise<CiSeed> {
  const world = await World.make(new Random(seed));
  await world.live();
  const { court, clock } = world;
  return { seed, violation: court.violation, tally: court.tally, simulatedMs: clock.wallMs() };
}

type Cluster = Awaited<ReturnType<typeof testCluster>>;
type Run = { readonly id: string; readonly drawn: Drawn };

class World {
  readonly court = new CiCourt();
  readonly clock: ManualClock;
  readonly #random: Random;
  readonly #cluster: Cluster;
  readonly #weather: Weather;
  readonly #blobs;
  readonly #effects: Effects;
  readonly #environments: Environments;
  readonly #deployments: Deployments;
  readonly #machines: Machine[] = [];
  readonly #runs: Run[] = [];
  #made = 0;

  static async make(random: Random): Promise<World> {
    const clock = new ManualClock(1_000_000);
    return new World(random, clock, await testCluster(clock));
  }

  private constructor(random: Random, clock: ManualClock, cluster: Cluster) {
    this.#random = random;
    this.clock = clock;
    this.#cluster = cluster;
    this.#weather = {
      lostChance: random.fraction() * 0.05,
      unansweredChance: random.fraction() * 0.05,
      lateChance: random.fraction() * 0.02,
    };
    this.#blobs = createMemoryBlobs({ clock, sizeBytesMax: 64 << 20 });
    const records = watchedRecords(
      memoryRecords(() => clock.wallMs()),
      clock,
    );
    const isLive = liveClaims(cluster.client, clock);
    this.#effects = new Effects({
      records,
      clock,
      isLive: (owner, { token: claim, ...of }) => isLive({ tenant: owner, claim, ...of }),
    });
    this.#environments = new Environments(records);
    this.#deployments = new Deployments(records);
  }

  async live(): Promise<void> {
    const rules = EnvironmentRules.parse({ reviewers: people, approvals: 2 });
    await this.#environments.set(tenant, { repository, environment: "production", rules, by: "ada", atMs: 0 });
    for (let at = 0; at < machinesCount; at += 1) this.#start();
    const runs = this.#random.between(3, 8);
    for (let at = 0; at < runs; at += 1) void this.#later(at * 12_000, async () => await this.#submit(at));
    this.#storm();
    await this.#pass(stormMs);
    this.#heal();
    for (let waited = 0; waited < calmMs && !this.court.violation && !this.#hasEnded(runs); waited += 10_000)
      await this.#pass(10_000);
    for (const machine of this.#machines) machine.kill();
    if (!this.court.violation) await this.#judge(runs);
  }

  /** The shard looks at its clock by itself, as its host would make it. */
  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms && !this.court.violation; passed += lookMs) {
      await this.clock.advance(lookMs);
      for (const shard of this.#cluster.shards) if (!shard.down) shard.tick();
    }
  }

  #start(): void {
    this.#made += 1;
    const { client, directory, network } = this.#cluster;
    const random = this.#random.fork(`machine ${this.#made}`);
    const machine = new Machine(`m${this.#made}`, this.clock, this.#weather, random);
    this.#machines.push(machine);
    const transport = machine.transport(network.transportAt(machine.name));
    const router = createRouter({ ownerships: directory.ownerships, transport, clock: machine.clock, random });
    const { command, query } = askers(router);
    const { clock } = machine;
    const gatePorts = { client, clock, environments: this.#environments, deployments: this.#deployments };
    const worker = createWorker({
      client: executorClient(command, query, random, gathering(router, 1)),
      blobs: this.#blobs,
      clock,
      random,
      executor: machine.name,
      offers: [taskLabel, planLabel, "runner=x"],
      shards: 1,
      sources: () => new Map(),
      runners: { [kinds.job]: jobRunner({ machine, court: this.court, effects: this.#effects, random }) },
      planners: ciPlanners({
        client,
        gate: async (stage) => {
          await machine.up();
          return await gate(gatePorts, stage);
        },
      }),
      options: { slots: 2 },
    });
    void worker.run(new AbortController().signal);
  }

  async #submit(at: number): Promise<void> {
    const random = this.#random.fork(`run ${at}`);
    const drawn = drawWorkflow(random);
    const record: RunRecord = {
      file: { path: "w.yml", text: drawn.text },
      github: { ref: "refs/heads/main", actor: "dan" },
      vars: {},
      inputs: {},
      source: { repository, sha: "0".repeat(40) },
    };
    const about = { title: "w", workflow: drawn.group, path: "w.yml", repository, event: "push" };
    const more = { ref: "refs/heads/main", sha: "0".repeat(40), actor: "dan" };
    const stored = await storeRun(this.#blobs, record, { ...about, ...more });
    const order = planRun(record, stored, { tenant, shardKey: repository });
    const { jobId } = await this.#patiently(async () => await this.#cluster.client.submit(order));
    this.#runs.push({ id: jobId, drawn });
    for (const person of random.chance(0.9) ? people : [])
      void this.#later(random.below(20_000), async () => await this.#approve(jobId, person, random));
    if (random.chance(0.3))
      void this.#later(
        random.below(40_000),
        async () => await this.#patiently(async () => await this.#cluster.client.cancel(jobId, "cancelled by dan")),
      );
  }

  /** A browser that is impatient, or a client that heard no answer, sends it again. */
  async #approve(run: string, person: string, random: Random): Promise<void> {
    const said = { environment: "production", person, state: "approved" as const, comment: "" };
    const signal = { id: reviewId(said), name: signals.review, payload: JSON.stringify(said), by: person };
    this.court.approved(run, person);
    for (let times = random.between(1, 3); times > 0; times -= 1) {
      await this.#patiently(async () => {
        const { view } = await this.#cluster.client.job(run);
        if (view.stages.some(({ name }) => name === "deploy")) await this.#cluster.client.signal(run, "deploy", signal);
      });
      await this.clock.sleep(random.below(3_000));
    }
  }

  /** People try again; what is refused is refused. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (;;)
      try {
        return await work();
      } catch (error) {
        if (this.court.violation) throw error;
        if (!(error instanceof Error) || !/unavailable|unknown-outcome/.test(error.message)) return undefined as T;
        await this.clock.sleep(1_000);
      }
  }

  async #later(ms: number, work: () => Promise<unknown>): Promise<void> {
    await this.clock.sleep(ms);
    await work();
  }

  #storm(): void {
    const random = this.#random.fork("storm");
    const untilMs = this.clock.wallMs() + stormMs;
    const every = async (averageMs: number, fault: () => void): Promise<void> => {
      for (;;) {
        await this.clock.sleep(random.below(2 * averageMs));
        if (this.clock.wallMs() >= untilMs) return;
        fault();
      }
    };
    const { tally } = this.court;
    void every(random.between(15_000, 90_000), () => {
      const machine = random.pick(this.#machines.filter(({ isDead }) => !isDead));
      machine.kill();
      tally.kills += 1;
      void this.#later(random.below(5_000), async () => this.#start());
    });
    void every(random.between(15_000, 90_000), () => {
      const machine = random.pick(this.#machines.filter(({ isDead }) => !isDead));
      machine.sleep();
      tally.pauses += 1;
      void this.#later(random.between(100, 90_000), async () => machine.wake());
    });
    void every(random.between(30_000, 120_000), () => {
      const shard = random.pick(this.#cluster.shards);
      if (shard.down) return;
      shard.down = true;
      tally.outages += 1;
      void this.#later(random.between(100, 40_000), async () => shard.comeBack());
    });
  }

  #heal(): void {
    this.#weather.lostChance = this.#weather.unansweredChance = this.#weather.lateChance = 0;
    for (const machine of this.#machines) machine.wake();
    for (const shard of this.#cluster.shards) if (shard.down) shard.comeBack();
    for (const { id } of this.#runs)
      for (const person of people) void this.#approve(id, person, this.#random.fork(`${id} ${person}`));
  }

  #hasEnded(runs: number): boolean {
    return (
      this.#runs.length === runs &&
      this.#cluster.shards.every(({ state }) => state.jobs.values().every(({ endedAtMs }) => endedAtMs !== undefined))
    );
  }

  async #judge(runs: number): Promise<void> {
    if (!this.#hasEnded(runs)) return this.court.violate("CS6", "a run has not ended");
    for (const { id, drawn } of this.#runs) {
      const { view } = await this.#cluster.client.job(id);
      const { conclusion, jobs } = viewRun(view);
      const told = jobs.map((job) => `${job.id} ${job.conclusion ?? "none"}`).join(", ");
      // a machine that is lost too often is a failure that a job may have
      const isExcused = jobs.some(({ cells }) => cells.some(({ failure }) => failure !== undefined));
      if (conclusion === "failure" && !isExcused) this.court.violate("CS6", `${id} failed: ${told}`);
      if (conclusion !== "success") continue;
      for (const { job, cells, steps } of drawn.effects)
        for (const step of steps)
          for (let cell = 0; cell < cells; cell += 1) this.court.mustBeDone(`${id} ${job}/${cell}/${step}`);
    }
  }
}
