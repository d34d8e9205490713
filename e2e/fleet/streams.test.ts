/**
 * A client of three real nodes, by the raw protocol: the owner, the worker and the node that was asked may each die.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Bench, metadataOf, responseOf } from "#e2e/node/build/execution-lab.ts";
import { parseJob } from "#base/ids.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import {
  Execution,
  ExecutionStage_Value as Stage,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { Operations, type Operation } from "#wire/generated/google/longrunning/operations.ts";
import { Fleet, type Member } from "./fleet.ts";
import { attemptsOf } from "./verdict.ts";

const postgres = await sharedPostgres();
const shards = 32;

describe("a client of a fleet", { skip: postgres.skip, timeout: 280_000 }, () => {
  const processes = new Processes();
  let fleet: Fleet;
  let database: string;
  let journal: ReturnType<typeof postgresJournal>;

  const bench = (member: Member): Bench => new Bench(fleet.client(member));
  const ownerOf = async (operation: string): Promise<string | undefined> => {
    const { shard } = jobOf(operation);
    return (await journal.ownerships()).find((row) => row.shard === shard)?.owner;
  };
  const [n1, n2, n3] = ["n1", "n2", "n3"].map((name) => () => fleet.member(name)) as [
    () => Member,
    () => Member,
    () => Member,
  ];
  const back = async (member: Member): Promise<void> => {
    fleet.up(member);
    await fleet.ready(member);
  };
  const on = (node: string): Asks => [{ name: "node", value: node }];

  before(async () => {
    database = await postgres.server().freshDatabase();
    fleet = await Fleet.start({ nodes: 3, shards, leaseMs: 2_000, slots: 4 }, { processes, database });
    journal = postgresJournal({ url: database });
  });
  after(async () => {
    await journal.close();
    await fleet[Symbol.asyncDispose]();
    await processes.close();
    await postgres.stop();
  });

  /** An action that runs for `seconds` on the chosen worker, in a shard of the chosen owner. */
  async function begin(through: Member, wants: { owner?: string; asks: Asks }, seconds: number): Promise<Begun> {
    for (let tries = 0; tries < 60; tries += 1) {
      const line = `sleep ${seconds}; echo ${randomUUID()} > flour`;
      const action = await bench(through).sh(line, { outputPaths: ["flour"] }, {}, platform(wants.asks));
      const stream = bench(through).stream(action);
      const first = await stream.next();
      const name = first.done ? "" : first.value.name;
      if (wants.owner !== undefined && (await ownerOf(name)) !== wants.owner) {
        await fleet.client(through).unary(Operations.methods.cancelOperation, { name });
        continue;
      }
      let executing = first;
      while (!executing.done && metadataOf(executing.value).stage !== Stage.EXECUTING) executing = await stream.next();
      const worker = executing.done ? "" : workerOf(executing.value);
      return { name, stream, worker, action };
    }
    throw new Error("no action fell to the owner that was wanted");
  }

  test("any node answers for any action: its state, its outputs, its cancellation", async () => {
    const { name, stream } = await begin(n1(), { owner: "n2", asks: on("n3") }, 0);
    const { last } = await rest(stream);
    equal(responseOf(last).result?.exitCode, 0);
    for (const member of [n1(), n2(), n3()]) {
      const told = await fleet.client(member).unary(Operations.methods.getOperation, { name });
      equal(responseOf(told).result?.executionMetadata?.worker, "n3");
      const listed = await fleet
        .client(member)
        .unary(Operations.methods.listOperations, { name: "operations", filter: "", pageSize: 100, pageToken: "" });
      ok(listed.operations.some((operation) => operation.name === name));
      const digest = responseOf(last).result?.outputFiles[0]?.digest;
      ok(digest && (await bytesAt(member, digest)).length === digest.sizeBytes);
      const waited = await rest(fleet.client(member).serverStream(Execution.methods.waitExecution, { name }));
      equal(waited.last.done, true);
    }
    const long = await begin(n1(), { owner: "n1", asks: on("n3") }, 60);
    await fleet.client(n2()).unary(Operations.methods.cancelOperation, { name: long.name });
    const ended = await rest(long.stream);
    equal(responseOf(ended.last).status?.code, grpcCode.cancelled);
  });

  test("an idle worker starts at once, whichever node owns the shard and whichever is asked", async (context) => {
    const waitedMs: number[] = [];
    for (let i = 0; i < 30; i += 1) {
      const action = await bench(n1()).sh(`echo ${randomUUID()}`, {}, {}, platform(on(`n${1 + (i % 3)}`)));
      const { response } = await bench(n1()).execute(action);
      const { queuedTimestamp: queued, workerStartTimestamp: begun } = response.result?.executionMetadata ?? {};
      const msOf = (time: typeof queued): number => (time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1e6;
      waitedMs.push(msOf(begun) - msOf(queued));
    }
    const sorted = waitedMs.toSorted((a, b) => a - b);
    context.diagnostic(`ms from queued to begun: p50 ${sorted[15]?.toFixed(1)}, most ${sorted[29]?.toFixed(1)}`);
    ok((sorted[15] ?? 0) < 150, `half of them waited ${sorted[15]} ms`);
  });

  test("a node with free slots runs what it is given", async (context) => {
    let here = 0;
    for (let i = 0; i < 30; i += 1) {
      const asked = [n1(), n2(), n3()][i % 3] as Member;
      const { response } = await bench(asked).execute(await bench(asked).sh(`echo ${randomUUID()}`));
      if (response.result?.executionMetadata?.worker === asked.name) here += 1;
    }
    context.diagnostic(`${here} of 30 were run by the node that was asked`);
    ok(here >= 20, `${here} of 30`);
  });

  test("the owner dies: the call goes on, and the action is not run again", async () => {
    const { stream, name } = await begin(n1(), { owner: "n2", asks: on("n3") }, 6);
    await fleet.kill(n2());
    const { last } = await rest(stream);
    equal(responseOf(last).result?.exitCode, 0);
    equal(await begunTimes(name), 1);
    await back(n2());
  });

  test("the worker dies: the call goes on, and another worker runs it", async () => {
    const begun = await begin(n1(), { owner: "n1", asks: [{ name: "stones", value: "yes" }] }, 4);
    await fleet.kill(fleet.member(begun.worker));
    const { last, stages } = await rest(begun.stream);
    equal(responseOf(last).result?.exitCode, 0);
    equal(await begunTimes(begun.name), 2);
    ok(stages.includes(Stage.QUEUED) && stages.includes(Stage.EXECUTING), stages.join());
    ok(responseOf(last).result?.executionMetadata?.worker !== begun.worker);
    await back(fleet.member(begun.worker));
  });

  test("the node that was asked dies: the client continues at another by the operation's name", async () => {
    const { name, stream } = await begin(n1(), { owner: "n2", asks: on("n3") }, 6);
    await fleet.kill(n1());
    const lost = await rest(stream).then(
      () => undefined,
      (error: unknown) => error,
    );
    ok(isGrpcError(lost, grpcCode.unavailable), String(lost));
    const { last } = await rest(fleet.client(n3()).serverStream(Execution.methods.waitExecution, { name }));
    equal(responseOf(last).result?.exitCode, 0);
    equal(await begunTimes(name), 1);
    await back(n1());
  });

  test("ownership is spread again when a node is back", async () => {
    await until(
      "every node owns its share",
      async () => {
        const owners = (await journal.ownerships()).map(({ owner }) => owner ?? "nobody");
        const counts = ["n1", "n2", "n3"].map((name) => owners.filter((owner) => owner === name).length);
        return counts.every((count) => count >= Math.floor(shards / 3));
      },
      { limitMs: 60_000, everyMs: 200 },
    );
    deepEqual((await journal.ownerships()).length, shards);
  });

  async function bytesAt(member: Member, { hash, sizeBytes }: Digest): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    const request = { resourceName: `blobs/${hash}/${sizeBytes}`, readOffset: 0, readLimit: 0 };
    for await (const { data } of fleet.client(member).serverStream(ByteStream.methods.read, request)) parts.push(data);
    return Buffer.concat(parts);
  }

  const begunTimes = (name: string): Promise<number> => attemptsOf(jobOf(name), database, fleet.shared);
});

/** What an action's platform requires of its worker. */
type Asks = readonly { readonly name: string; readonly value: string }[];

const platform = (properties: Asks) => ({ platform: { properties } });

type Begun = {
  readonly name: string;
  readonly stream: AsyncGenerator<Operation>;
  readonly worker: string;
  readonly action: Digest;
};

const jobOf = (operation: string) => parseJob(operation.split("/").at(-1) ?? "") ?? { shard: -1, job: -1 };

const workerOf = (operation: Operation): string => metadataOf(operation).partialExecutionMetadata?.worker ?? "";

async function rest(stream: AsyncIterable<Operation>): Promise<{ last: Operation; stages: readonly number[] }> {
  const all: Operation[] = [];
  for await (const operation of stream) all.push(operation);
  const last = all.at(-1);
  if (!last) throw new Error("the call ended without a word");
  return { last, stages: all.map((operation) => metadataOf(operation).stage) };
}
