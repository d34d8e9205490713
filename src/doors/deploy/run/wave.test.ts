/** A wave over the desks of ten nodes: what it says to the kernel does not grow with the fleet. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { Peers } from "#door/ports.ts";
import { isNamed } from "#doors/deploy/agent/machine.ts";
import { FleetDesk } from "#doors/deploy/fleet/desk.ts";
import { fleetOf, heldMethod, tallyMethod, waking } from "#doors/deploy/fleet/fleet.ts";
import { GoalStore } from "#doors/deploy/fleet/goals.ts";
import type { Standee, Tally, TallyQuestion } from "#doors/deploy/fleet/tally.ts";
import type { WaveResult, WaveSpec } from "#doors/deploy/plan.ts";
import { ServiceFile } from "#doors/deploy/service/service-file.ts";
import { createKey, signerOf } from "#doors/deploy/signing/signing.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { Missing } from "./wave-fleet.ts";
import { waveRunner } from "./wave.ts";

const tenant = "acme";
const manifest = `${"a".repeat(64)}/10`;
const threeWaves = [
  { share: "1%", bake: "90s" },
  { share: "10%", bake: "2m" },
  { share: "100%", bake: "90s" },
];
const allAtOnce = [{ share: "100%" }];
const serviceOf = (waves: readonly object[]): ServiceFile =>
  ServiceFile.parse({
    service: "web",
    run: { exec: "run" },
    targets: { labels: [], regions: ["r0", "r1", "r2", "r3", "r4"] },
    waves,
  });

type Change = {
  readonly waves?: readonly object[];
  readonly fails?: (machine: string) => boolean;
  readonly silent?: (machine: string) => boolean;
};

/** `nodes` desks, each with its own machines, that ask each other as nodes do. */
function rig(nodes: number, machinesEach: number, change: Change = {}) {
  const { waves = threeWaves, fails = () => false, silent = () => false } = change;
  const service = serviceOf(waves);
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const store = createMemoryStore({ clock, sizeBytesMax: 2 ** 26 });
  const signer = signerOf(createKey().privatePem);
  const goals = new GoalStore({ index: createMemoryIndex(), store, signer: async () => signer, clock });
  const desks = Array.from({ length: nodes }, () => new FleetDesk(goals, { listsAfter: async () => [] }, clock));
  const peers: Peers = {
    nodes: () => desks.map((_, i) => ({ node: `n${i}`, address: String(i), alive: true, facts: {} })),
    async call(address, method, body) {
      const desk = desks[Number(address)];
      if (method === tallyMethod) return desk?.tally(body as TallyQuestion) satisfies Tally | undefined;
      if (method !== heldMethod) return [];
      const { question, names } = body as { question: TallyQuestion; names: string[] };
      return desk?.held(question, new Set(names)) satisfies readonly Standee[] | undefined;
    },
  };
  const [first] = desks;
  ok(first);
  const fleet = fleetOf({ node: "n0", desk: first, snapshots: { write: async () => [] }, peers });
  const machines = desks.flatMap((desk, i) =>
    Array.from({ length: machinesEach }, (_, at) => ({
      desk,
      machine: { tenant, machine: `m${i}-${at}`, region: `r${i % 5}`, labels: [] },
    })),
  );
  const stop = new AbortController();
  for (const { desk, machine } of machines) void desk.attach(machine, undefined, stop.signal).next();
  const report = async (): Promise<void> => {
    const heads = new Map<string, Awaited<ReturnType<GoalStore["head"]>>>();
    for (const region of service.targets.regions)
      heads.set(region, await goals.head({ tenant, service: "web", region }));
    for (const { desk, machine } of machines) {
      const goal = heads.get(machine.region)?.goal;
      const name = machine.machine;
      if (silent(name)) continue;
      const isIn = goal !== undefined && isNamed(name, goal);
      const state = !isIn ? "idle" : fails(name) ? "reverted" : "healthy";
      const running = state === "healthy" ? manifest : null;
      desk.report(machine, { machine: name, service: "web", goalVersion: goal?.version ?? 0, state, running });
    }
  };
  const said: string[] = [];
  const roll = async (wave: number, before?: WaveResult): Promise<RunOutcome> => {
    const spec: WaveSpec = {
      service,
      wave,
      manifest,
      evidence: before?.evidence ?? null,
      ...(before?.certificate && { certificate: before.certificate }),
    };
    const task = { jobId: "j1-1", tenant, spec: JSON.stringify(spec) } as RunContext["task"];
    const { blobs } = store.forTenant(tenant);
    const says = ({ name = "" }: { readonly name?: string }): void => void said.push(name);
    const context: RunContext = { task, signal: stop.signal, clock, blobs, report: says };
    const desk = waking("n0", first, peers);
    const running = waveRunner({ goals, fleet, desk, controls: { paused: async () => undefined } })(context);
    let outcome: RunOutcome | undefined;
    void running.then((one) => (outcome = one));
    while (!outcome) {
      await report();
      await clock.advance(2_000);
    }
    return outcome;
  };
  return { roll, said, stop: () => stop.abort() };
}

async function wholeRelease(machinesEach: number): Promise<{ readonly said: readonly string[] }> {
  const { roll, said, stop } = rig(10, machinesEach);
  let before: WaveResult | undefined;
  for (const wave of threeWaves.keys()) {
    const outcome = await roll(wave, before);
    ok(outcome.kind === "done", JSON.stringify(outcome));
    before = JSON.parse(outcome.payload) as WaveResult;
  }
  stop();
  return { said };
}

describe("waves over many nodes", () => {
  test("say as much of 400 machines as of 20, some lines a minute, and end with what all machines said", async () => {
    const [small, large] = [await wholeRelease(2), await wholeRelease(40)];
    match(large.said.at(-1) ?? "", /400 of 400 healthy/);
    const words = (said: readonly string[]): readonly string[] => said.map((line) => line.replace(/\d+/g, "n"));
    deepEqual(words(large.said).length, words(small.said).length);
    ok(large.said.length < 40, `${large.said.length} lines in five minutes of bakes`);
  });

  test("HJ4: fail early where too many go back, and name some", async () => {
    const { roll, stop } = rig(10, 40, { waves: allAtOnce, fails: (machine) => machine.endsWith("1") });
    const outcome = await roll(0);
    stop();
    ok(outcome.kind === "failed");
    match(outcome.message, /40 of 400 failed, limit 1%; m0-1: /);
  });

  test("HJ2: fail where a few of the machines fall silent, whose streams are still held", async () => {
    const { roll, stop } = rig(2, 4, { waves: allAtOnce, silent: (machine) => machine === "m1-3" });
    const outcome = await roll(0);
    stop();
    ok(outcome.kind === "failed");
    match(outcome.message, /1 of 8 are silent/);
  });
});

describe("machines that are missing", () => {
  const counts = { machines: 10, healthy: 10, failed: 0, silent: 0, working: 0, targets: 100 };

  test("HJ1: are waited for, and are silent in the end; a share of them is in the wave", () => {
    const missing = new Missing(30_000);
    equal(missing.added(counts, 100_000, 0).machines, 10);
    const fewer = { ...counts, machines: 5, healthy: 5, targets: 50 };
    deepEqual(missing.added(fewer, 100_000, 1_000), { machines: 10, healthy: 5, failed: 0, silent: 0, working: 5 });
    deepEqual(missing.added(fewer, 100_000, 32_000), { machines: 10, healthy: 5, failed: 0, silent: 5, working: 0 });
    equal(missing.added(counts, 100_000, 33_000).silent, 0, "they are back");
  });
});
