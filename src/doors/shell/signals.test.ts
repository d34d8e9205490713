// Who may be sent what, and how a running command gets it.
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import type { Signal, Step } from "#kernel/model/model.ts";
import { clearAway } from "#testing/clear-away.ts";
import { Holding } from "#worker/holding.ts";
import { grantedTask } from "#worker/testing/granted.ts";
import { shellDoorKinds } from "./kinds.ts";
import { kinds } from "./plan.ts";
import { ShellJob } from "./request.ts";
import { takeSignals } from "./signals.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-signals-"));
after(() => clearAway(folder));

const by = { name: "ann", isOperator: false };
const signal = (name: string) => ({ id: "1", name, payload: "" });

test("a stage takes the signals that its job file names, besides those of gates", () => {
  const stages = [{ name: "serve", run: "true", signals: { reload: "HUP" } }];
  const spec = JSON.stringify(ShellJob.parse({ stages }));
  const refused = (name: string, to?: { readonly stage: string; readonly spec: string }) =>
    shellDoorKinds.signal(signal(name), by, to);
  equal(refused("reload", { stage: "serve", spec }), undefined);
  equal(refused("approve", { stage: "serve", spec }), undefined);
  match(refused("reload", { stage: "other", spec }) ?? "", /names under signals/);
  match(refused("stop", { stage: "serve", spec }) ?? "", /names under signals/);
  match(refused("constructor", { stage: "serve", spec }) ?? "", /names under signals/);
  match(refused("reload", { stage: "serve", spec: "" }) ?? "", /names under signals/);
  match(refused("reload") ?? "", /names under signals/);
  equal(refused("reload", { stage: "serve", spec: "a reference to a long text" }), undefined);
});

test("a job file names signals of the system, or a file, and none that a gate takes", () => {
  const problems = (stage: object): string =>
    ShellJob.safeParse({ stages: [{ name: "serve", ...stage }] }).error?.message ?? "";
  equal(problems({ run: "true", signals: { reload: "HUP", note: "file", two: "USR2" } }), "");
  match(problems({ run: "true", signals: { reload: "KILL" } }), /signals/);
  match(problems({ run: "true", signals: { approve: "HUP" } }), /gates/);
  match(problems({ sleep: "1s", signals: { reload: "HUP" } }), /only run takes signals/);
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`s${n}`, "file"]));
  match(problems({ run: "true", signals: many }), /20 signals at most/);
});

const task = () => grantedTask({ door: "shell", kind: kinds.command, spec: "", effects: "pure" });

test("a signal is acknowledged when the command has it, and comes again if it could not be handed over", async () => {
  const clock = new ManualClock();
  using holding = new Holding(task(), "e", clock, clock.monotonicMs());
  const got: number[] = [];
  let isBroken = true;
  const busy = Promise.withResolvers<void>();
  holding.onSignal(async ({ id }) => {
    await busy.promise;
    if (id === "2" && isBroken) throw new Error("no space");
    got.push(Number(id));
  });
  const sent = [1, 2, 3].map((number) => ({ ...signal("reload"), id: String(number), number }));
  holding.hear(sent.slice(0, 1));
  await settle();
  equal(holding.heard, 0, "the command does not run yet");
  holding.hear(sent); // the shard repeats what was not acknowledged
  busy.resolve();
  await settle();
  deepEqual([got, holding.heard], [[1], 1]);
  isBroken = false;
  holding.hear(sent.slice(1));
  await settle();
  deepEqual([got, holding.heard], [[1, 2, 3], 3]);
});

test("what was sent before the command began is in the file, and brings no signal of the system", async () => {
  const clock = new ManualClock();
  let hear: ((one: Signal) => void | Promise<void>) | undefined;
  const steps: Step[] = [];
  const context = {
    clock,
    report: (step: Step) => void steps.push(step),
    onSignal: (listener: (one: Signal) => void | Promise<void>) => void (hear = listener),
  };
  const { env, started } = await takeSignals({ reload: "HUP", note: "file" }, context, folder);
  const early = hear?.({ ...signal("reload"), payload: "old", atMs: clock.wallMs() - 5_000 });
  equal(readFileSync(env["MILLRACE_SIGNALS"] ?? "", "utf8"), "");
  const told: string[] = [];
  started((name) => told.push(name));
  await early;
  const atMs = clock.wallMs() + 1_000;
  for (const name of ["note", "approve", "reload"]) await hear?.({ ...signal(name), by: "ann", atMs });
  deepEqual(told, ["SIGHUP"]);
  const lines = readFileSync(env["MILLRACE_SIGNALS"] ?? "", "utf8")
    .trimEnd()
    .split("\n");
  deepEqual(
    lines.map((line) => JSON.parse(line) as { name: string }).map(({ name }) => name),
    ["reload", "note", "reload"],
  );
  deepEqual(JSON.parse(lines[2] ?? ""), { name: "reload", payload: "", by: "ann", at: new Date(atMs).toISOString() });
  deepEqual(steps, [
    { step: 2, name: "signal reload", status: "succeeded" },
    { step: 3, name: "signal note", status: "succeeded" },
    { step: 2, name: "signal reload", status: "succeeded" },
  ]);
  await rejects(takeSignals({}, context, folder), /EEXIST/, "a folder is of one attempt");
});
