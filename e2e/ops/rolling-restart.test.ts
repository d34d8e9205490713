/** Three nodes are drained and started again one after the other, while builds run: no client notices. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sharedPostgres, type SharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { Processes } from "#e2e/chaos/processes.ts";
import { Fleet, type Member } from "#e2e/fleet/fleet.ts";
import { PatientClient } from "./patient-client.ts";

const program = join(import.meta.dirname, "../../src/cli/main.ts");
const plan = { nodes: 3, shards: 8, leaseMs: 4_000, slots: 3 };
const clients = 6;

const postgres: SharedPostgres = await sharedPostgres();
const skip = process.platform === "linux" ? postgres.skip : "needs linux: the sandbox";

describe("nodes that come and go", { skip, timeout: 240_000 }, () => {
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

  const dataOf = ({ name }: Member): string => join(fleet.folder, name);
  const stateOf = async (member: Member) =>
    (await fetch(`http://${member.edge}/v1/node/drain`, { headers: fleet.headers(member) }).then((answer) =>
      answer.json(),
    )) as {
      state: string;
      running: number;
      shards: number;
    };
  const isReady = ({ edge }: Member): Promise<boolean> =>
    fetch(`http://${edge}/readyz`).then(
      ({ ok: ready }) => ready,
      () => false,
    );
  const targets = () =>
    fleet.members.map((member) => ({
      name: member.name,
      client: fleet.client(member),
      isReady: () => isReady(member),
    }));

  test("a rolling restart fails no action", async (t) => {
    const began = new Set<string>();
    const stop = new AbortController();
    const workers = new Map<string, number>();
    let done = 0;
    const loop = async (n: number): Promise<number> => {
      const client = new PatientClient(targets(), n);
      for (let i = 0; !stop.signal.aborted; i += 1) {
        const key = `${n}-${i}-${randomUUID()}`;
        began.add(key);
        const { status, result } = await client.run(`sleep 0.${3 + (i % 4)}; echo ${key}`);
        deepEqual([status?.code ?? 0, result?.exitCode], [0, 0], key);
        const worker = result?.executionMetadata?.worker ?? "";
        workers.set(worker, (workers.get(worker) ?? 0) + 1);
        done += 1;
      }
      return client.turns;
    };
    const loops = Array.from({ length: clients }, (_, n) => loop(n));
    const failed = Promise.race(loops.map((each) => each.then(() => new Promise<never>(() => {}))));
    const during = async <T>(work: Promise<T>): Promise<T> => await Promise.race([work, failed]);
    await during(until("builds run", () => done >= clients, { limitMs: 60_000, everyMs: 50 }));
    for (const member of fleet.members) {
      const doneBefore = done;
      const drained = await during(millrace("drain", "--data", dataOf(member), "--within", "1m", "--json"));
      equal(drained.code, 0, drained.text);
      match(drained.text, /"state":"left"/);
      await during(member.child?.exited() ?? Promise.resolve());
      match(member.child?.ending ?? "", /exit code 0$/);
      fleet.up(member);
      await during(fleet.ready(member));
      await during(until("it has shards again", async () => (await stateOf(member)).shards > 0, patience));
      ok(done > doneBefore, "builds went on meanwhile");
    }
    stop.abort();
    const turns = (await Promise.all(loops)).reduce((sum, n) => sum + n, 0);
    equal(done, began.size);
    deepEqual([...workers.keys()].toSorted(), ["n1", "n2", "n3"], "all of them did some of the work");
    t.diagnostic(`${done} actions, ${turns} calls that had to be made again at another node`);
  });

  test("a drained node stays if told to, is not ready, and comes back when it is resumed", async () => {
    const [member] = fleet.members;
    ok(member);
    const server = ["--data", dataOf(member)];
    const drained = await millrace("drain", ...server, "--stay");
    equal(drained.code, 0, drained.text);
    match(drained.text, /drained: 0 running, 0 shards here/);
    equal(await isReady(member), false);
    const one = { name: "n1", client: fleet.client(member), isReady: () => Promise.resolve(true) };
    const { result } = await new PatientClient([one], 0).run(`echo ${randomUUID()}`);
    ok(result?.executionMetadata?.worker !== "n1", "it answers, and others do the work");
    const resumed = await millrace("drain", ...server, "--resume");
    equal(resumed.code, 0, resumed.text);
    equal(await isReady(member), true);
    await until("it has shards again", async () => (await stateOf(member)).shards > 0, patience);
  });
});

const patience = { limitMs: 60_000, everyMs: 100 };

function millrace(...args: readonly string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (text += part.toString()));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, text })));
}
