/** Shards in memory, for tests of code that talks to shards: the real kernel, without journal, lease or network. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { answer, jobView } from "#kernel/read/answer.ts";
import type { Command } from "#kernel/model/command.ts";
import { jobOf } from "#kernel/model/event-job.ts";
import type { Event } from "#kernel/model/event.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import { State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";
import type { Cluster, Ownership } from "#journal/journal.ts";
import { createClient, type WorkClient } from "#shard/client/client.ts";
import type { Directory } from "#shard/client/directory.ts";
import type {
  CommandOutcome,
  ShardRequest,
  ShardResponse,
  ShardService,
  WatchMessage,
  WatchRequest,
} from "#shard/transport/protocol.ts";
import { createRouter } from "#shard/router/router.ts";
import { MemoryNetwork } from "#shard/transport/memory.ts";

export class TestShard implements ShardService {
  readonly state: State;
  readonly asked: ShardRequest[] = [];
  readonly events: Event[] = [];
  /** While true, requests get no answer. */
  down = false;
  readonly #clock: Clock;
  #seq = 0;

  constructor(shard: number, clock: Clock) {
    this.state = new State(shard, { ...defaultLimits, sleepMs: Number.POSITIVE_INFINITY });
    this.#clock = clock;
  }

  async request(request: ShardRequest, signal?: AbortSignal): Promise<ShardResponse> {
    if (this.down) throw new Fault("unavailable", "ask shard", { why: "down" });
    this.asked.push(request);
    if (request.kind === "take") return { kind: "not-owner", shard: request.shard, hint: undefined };
    if (request.kind === "query") {
      const answered = answer(this.state, request.query, this.#clock.wallMs());
      return answered.ok
        ? { kind: "answer", stamp: this.stamp, answer: answered.answer }
        : { kind: "rejected", stamp: this.stamp, rejection: answered.rejection };
    }
    if (request.kind === "commands") {
      const said = request.commands.map((command) => this.#do(command));
      return { kind: "said", stamp: this.stamp, said };
    }
    const untilMs = this.#clock.monotonicMs() + (request.waitMs ?? 0);
    for (;;) {
      this.tick();
      const response = this.#do(request.command);
      const isEmpty = response.kind === "reply" && "grants" in response.reply && response.reply.grants.length === 0;
      if (!isEmpty || this.#clock.monotonicMs() >= untilMs || signal?.aborted || this.down) return response;
      await this.#clock.sleep(10, signal);
    }
  }

  async *watch(request: WatchRequest, signal: AbortSignal): AsyncGenerator<WatchMessage> {
    let told = "";
    for (;;) {
      const job = this.state.jobs.get(request.job);
      if (!job) {
        yield { kind: "rejected", stamp: this.stamp, rejection: { kind: "job-unknown", job: request.job } };
        return;
      }
      const view = jobView(job, this.#clock.wallMs(), 100);
      if (JSON.stringify(view) !== told) yield { kind: "snapshot", stamp: this.stamp, view };
      told = JSON.stringify(view);
      if (view.endedAtMs !== undefined) return yield { kind: "end", stamp: this.stamp };
      await this.#clock.sleep(50, signal);
      this.tick();
    }
  }

  /** After an outage, as a new owner does: every live claim gets a full new lease. */
  comeBack(): void {
    this.down = false;
    this.#note(
      step(this.state, { kind: "take-over", epoch: this.state.epoch + 1, node: "node" }, this.#clock.wallMs()).events,
    );
  }

  tick(): void {
    this.#note(step(this.state, { kind: "tick" }, this.#clock.wallMs()).events);
  }

  /** The events of a job so far, by kind. */
  kindsOf(job: number): readonly string[] {
    return this.events.filter((event) => jobOf(this.state, event) === job).map(({ kind }) => kind);
  }

  get stamp() {
    return { epoch: 1, seq: this.#seq };
  }

  #do(command: Command): CommandOutcome {
    // A host vouches for blobs; here every blob is assumed to exist.
    const { digests } = blobsIn(command) ?? {};
    const evident = (digests ? { ...command, evidence: { digests, pinnedForMs: 3_600_000 } } : command) as Command;
    const outcome = step(this.state, evident, this.#clock.wallMs());
    this.#note(outcome.events);
    return outcome.ok
      ? { kind: "reply", stamp: this.stamp, reply: outcome.reply }
      : { kind: "rejected", stamp: this.stamp, rejection: outcome.rejection };
  }

  #note(events: readonly Event[]): void {
    if (events.length > 0) this.#seq += 1;
    this.events.push(...events);
  }
}

/** A cluster of such shards, each on a node of its own, and a client for it. */
function blobsIn(command: Command): { readonly digests: readonly string[] } | undefined {
  if (command.kind === "commit" || command.kind === "fail") return command.result;
  return command.kind === "checkpoint" || command.kind === "release" ? command.checkpoint : undefined;
}

export async function testCluster(clock: Clock, count = 1) {
  const network = new MemoryNetwork();
  const shards = Array.from({ length: count }, (_, shard) => new TestShard(shard, clock));
  for (const shard of shards) await network.transportAt(`node${shard.state.shard}`).listen(shard);
  const cluster: Cluster = { clusterId: "test", shards: count, featureLevel: 1 };
  const ownerships = async (): Promise<readonly Ownership[]> =>
    shards.map((_, shard) => ({ shard, epoch: 1, owner: `node${shard}`, address: `node${shard}`, remainingMs: 1_000 }));
  const directory: Directory = {
    cluster: async () => cluster,
    nodes: async () => [],
    ownerships,
    history: {
      job: async () => undefined,
      jobs: async () => ({ jobs: [], cursor: undefined }),
      count: async () => ({ phases: [], capped: false }),
    },
  };
  const router = createRouter({ ownerships, transport: network.transportAt("client"), clock, random: new Random(7) });
  const client: WorkClient = createClient({ router, directory, random: new Random(8) });
  return { client, router, directory, shards, network };
}
