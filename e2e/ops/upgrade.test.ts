/**
 * Three nodes of a lower feature level are replaced one by one while builds and an array of tasks run: nothing is lost,
 * and the level of the cluster rises only when the last one is new. Then one shard gets a node of its own, under the
 * same load. With UPGRADE_FROM the nodes run another version at first: a checkout with its node_modules.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { sharedPostgres, type SharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { Fleet, type Member } from "#e2e/fleet/fleet.ts";
import { featuresHere } from "#shard/features.ts";
import { PatientClient } from "./patient-client.ts";

const checkout = process.env["UPGRADE_FROM"];
const settings = checkout === undefined ? [`node.features=${featuresHere - 1}`] : [];
const plan = { nodes: 3, shards: 8, leaseMs: 4_000, slots: 2, settings, checkout };
const parts = checkout === undefined ? 30 : 120;
const clients = 3;
const patience = { limitMs: 120_000, everyMs: 200 };

const postgres: SharedPostgres = await sharedPostgres();
const skip = process.platform === "linux" ? postgres.skip : "needs linux: the sandbox";

type Shown = {
  readonly phase: string;
  readonly endedAt?: string;
  readonly stages: readonly { readonly done: number; readonly manifest?: string }[];
};
type Cluster = {
  readonly featureLevel: number;
  readonly shards: readonly { readonly shard: number; readonly owner?: string; readonly isolatedOn?: string }[];
};

describe("a cluster under load", { skip, timeout: 400_000 }, () => {
  const processes = new Processes();
  let fleet: Fleet;
  before(async () => {
    fleet = await Fleet.start(plan, { processes, database: await postgres.server().freshDatabase() });
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    await processes.close();
    await postgres.stop();
  });

  const ask = async (member: Member, path: string, init: Omit<RequestInit, "headers"> = {}): Promise<Response> => {
    const headers = { ...fleet.headers(member), "content-type": "application/json" };
    return await fetch(`http://${member.edge}${path}`, { ...init, headers });
  };
  const submitArray = async (member: Member): Promise<string> => {
    const document = { stages: [{ name: "parts", sleep: "1s", array: parts, parallelMax: 2 }] };
    const answer = await ask(member, "/v1/jobs", { method: "POST", body: JSON.stringify({ document }) });
    return ((await answer.json()) as { readonly job: string }).job;
  };
  const clusterAt = async (member: Member): Promise<Cluster> =>
    (await (await ask(member, "/v1/cluster")).json()) as Cluster;
  const isReady = ({ edge }: Member): Promise<boolean> =>
    fetch(`http://${edge}/readyz`).then(
      ({ ok: ready }) => ready,
      () => false,
    );
  const load = () => {
    const stop = new AbortController();
    const counts = { begun: 0, done: 0 };
    const loops = Array.from({ length: clients }, async (_, n) => {
      const targets = fleet.members.map((member) => ({
        name: member.name,
        client: fleet.client(member),
        isReady: () => isReady(member),
      }));
      const client = new PatientClient(targets, n);
      while (!stop.signal.aborted) {
        counts.begun += 1;
        const { status, result } = await client.run(`sleep 0.2; echo ${randomUUID()}`);
        deepEqual([status?.code ?? 0, result?.exitCode], [0, 0]);
        counts.done += 1;
      }
    });
    const failed = Promise.race(loops.map((each) => each.then(() => new Promise<never>(() => {}))));
    const during = async <T>(work: Promise<T>): Promise<T> => await Promise.race([work, failed]);
    const end = async (): Promise<void> => {
      stop.abort();
      await Promise.all(loops);
      equal(counts.done, counts.begun, "every action that began has its result");
    };
    return { counts, during, end };
  };

  test("a rolling upgrade loses nothing, and the level rises at its end", async (t) => {
    const { counts, during, end } = load();
    await during(until("builds run", () => counts.done >= clients, patience));
    const [first] = fleet.members;
    ok(first);
    const { featureLevel: levelBefore } = await clusterAt(first);
    const job = await submitArray(first);
    for (const [i, member] of fleet.members.entries()) {
      const doneBefore = counts.done;
      member.child?.signal("SIGTERM");
      await during(member.child?.exited() ?? Promise.resolve());
      fleet.up(member, []);
      await during(fleet.ready(member));
      await during(until("builds go on", () => counts.done > doneBefore, patience));
      if (i < fleet.members.length - 1) equal((await clusterAt(member)).featureLevel, levelBefore, member.name);
    }
    await during(
      until("the level rises", async () => (await clusterAt(first)).featureLevel === featuresHere, patience),
    );
    const ofArray = async (): Promise<Shown> => (await (await ask(first, `/v1/jobs/${job}`)).json()) as Shown;
    await during(until("the array ends", async () => (await ofArray()).endedAt !== undefined, patience));
    const { phase, stages } = await ofArray();
    deepEqual([phase, stages[0]?.done, stages[0]?.manifest !== undefined], ["SUCCEEDED", parts, true]);
    await end();
    t.diagnostic(`${counts.done} actions, from level ${levelBefore} to ${featuresHere}`);
  });

  test("an isolated shard keeps its node, the others leave it, and builds go on", async (t) => {
    const { counts, during, end } = load();
    const [first] = fleet.members;
    ok(first);
    const hot = (await clusterAt(first)).shards.find(({ owner }) => owner === "n2")?.shard;
    ok(hot !== undefined, "n2 owns a shard");
    const isolated = await ask(first, `/v1/cluster/isolation/${hot}`, { method: "PUT", body: `{"node":"n2"}` });
    deepEqual(await isolated.json(), { shard: hot, node: "n2" });
    const ofN2 = async () =>
      (await clusterAt(first)).shards.filter(({ owner }) => owner === "n2").map(({ shard }) => shard);
    await during(until("n2 has that shard only", async () => String(await ofN2()) === String(hot), patience));
    const doneBefore = counts.done;
    await during(until("builds go on", () => counts.done >= doneBefore + clients, patience));
    equal((await ask(first, `/v1/cluster/isolation/${hot}`, { method: "DELETE" })).status, 200);
    await during(until("shards are even again", async () => (await ofN2()).length >= 2, patience));
    await end();
    t.diagnostic(`${counts.done} actions`);
  });
});
