/**
 * Proves that the checkers work: each guard that keeps a promise is removed from a copy of the source, and the hunt
 * over the copy must find the broken promise. A guard that can be removed unnoticed is not tested.
 *
 * `node bin/node.js src/sim/mutants.ts [--focused] [name...]` hunts them one after the other.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Mutant = {
  readonly name: string;
  readonly file: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly replace: string;
  /** The focus that finds it soonest; a hunt without a focus finds it too, later. */
  readonly focus: readonly string[];
};

export const mutants: readonly Mutant[] = [
  {
    name: "consumers wait for the manifest",
    file: "kernel/apply/settle.ts",
    find: "return stage.manifest?.no ? [] : [manifestDue(state, stage, nowMs)];",
    replace: "if (!stage.manifest?.no) return [manifestDue(state, stage, nowMs)];",
    focus: ["arrays"],
  },
  {
    name: "a lost result that comes out otherwise stops its consumers",
    file: "kernel/decide/finish.ts",
    find: "    ...consumersReopened(state, task, command.result, nowMs),\n",
    replace: "",
    focus: ["invalidates"],
  },
  {
    name: "a lost result voids the manifest that is due",
    file: "kernel/apply/task.ts",
    find: "  dropFromOutbox(state, task);\n  voidManifest(state, stage);",
    replace: "  dropFromOutbox(state, task);",
    focus: ["arrays", "invalidates", "blobs-slow"],
  },
  {
    name: "what has left memory is copied from the manifest before",
    file: "kernel/apply/manifest.ts",
    find: "set(state, stage, { no: 0, dueAtMs: 0, digest: undefined, base: digest });",
    replace: "set(state, stage, { no: 0, dueAtMs: 0, digest: undefined, base: undefined });",
    focus: ["arrays", "invalidates"],
  },
  {
    name: "a new owner writes the manifests that are due",
    file: "shard/manifest/desk.ts",
    find: "for (const no of shard.state.manifests.keys()) this.#add(shard, no);",
    replace: "",
    focus: ["arrays", "node-crash"],
  },
  {
    name: "an array goes on where a snapshot left it",
    file: "kernel/snapshot/array-rows.ts",
    find: "Object.assign(array, { next, rest: rest ?? undefined, restReason, troubles });",
    replace: "Object.assign(array, { next: plan.count, rest: rest ?? undefined, restReason, troubles });",
    focus: ["arrays", "node-crash"],
  },
  {
    name: "numbers of series are kept in snapshots",
    file: "kernel/snapshot/restore.ts",
    find: `else if (kind === "Q") this.#state.weigh(this.#state.series.restore(row[1], row[2]));`,
    replace: `else if (kind === "Q") return;`,
    focus: ["numbered", "node-crash"],
  },
  {
    name: "a number of a series is given once",
    file: "kernel/decide/submit.ts",
    find: "series.last(tenant, door, name) + 1;",
    replace: "Math.max(1, series.last(tenant, door, name));",
    focus: ["numbered"],
  },
  {
    name: "a signal is recorded once",
    file: "kernel/decide/plan.ts",
    find: "if (stage.gate?.signals.some((known) => known.id === id)) return accept({ recorded: true });",
    replace: "",
    focus: ["parent", "node-crash", "database-late"],
  },
  {
    name: "a new owner goes on telling ends",
    file: "shard/outbox/notices.ts",
    find: "for (const job of shard.state.telling) this.#add(shard, job);",
    replace: "",
    focus: ["parent", "node-crash"],
  },
  {
    name: "a job is kept until its end is told",
    file: "kernel/decide/admin.ts",
    find: " && !state.telling.has(job)",
    replace: "",
    focus: ["parent", "partition"],
  },
  {
    name: "fence on append",
    file: "journal/engine/engine-log.ts",
    find: "if (row.epoch !== epoch) return undefined;",
    replace: "",
    focus: ["node-stop", "database-late"],
  },
  {
    name: "fence on refusals",
    file: "shard/host/batch.ts",
    find: `    case "generation-stale":
      return true;`,
    replace: `    case "generation-stale":
      return false;`,
    focus: ["owner-unaware", "doubts", "single"],
  },
  {
    name: "fence on reads",
    file: "shard/host/shard.ts",
    find: "return this.lease.standsAt(this.#clock.monotonicMs());",
    replace: "return true;",
    focus: ["node-stop", "asks"],
  },
  {
    name: "leases of owners and executors run out while a machine sleeps",
    file: "base/boot-clock.ts",
    find: "return awakeMs + sleptMs;",
    replace: "return awakeMs;",
    focus: ["executor-sleep", "lockedEndless"],
  },
  {
    name: "work with outside effects ends before its lease does",
    file: "worker/holding.ts",
    find: "leaseMs - leaseMs / (1 + slew) + Math.min(1_000, leaseMs / 20)",
    replace: "leaseMs * 0",
    focus: ["store-clock-jump", "partition", "one-way-cut", "lockedEndless", "locked"],
  },
  {
    name: "durability before reply",
    file: "shard/host/committer.ts",
    find: "if (flight.batch.payload === undefined && !flight.batch.needsConfirm) this.#finish(flight);",
    replace: "if (!flight.batch.needsConfirm) this.#finish(flight);",
    focus: [],
  },
  {
    name: "the outcome of an append is unknown",
    file: "shard/host/committer.ts",
    find: `if (isFault(error, "unknown-outcome")) doubtful = true;`,
    replace: `if (isFault(error, "unknown-outcome")) return pending.forEach((flight) => this.#finish(flight));`,
    focus: ["database-loses"],
  },
  {
    name: "double plan",
    file: "kernel/decide/plan.ts",
    find: `  if (!found.claim) {
    const { task } = found;
    // The first recorded plan wins; later planners get that plan as their answer.
    if (task && task === task.stage.planning && task.phase === "SUCCEEDED")`,
    replace: `  if (!found.claim) {
    const { task } = found;
    if (task && task === task.stage.planning && task.stage.phase === "RUNNING")
      return accept({ recorded: true, plan: command.plan.kind }, planEvents(state, task, command, nowMs));
    if (task && task === task.stage.planning && task.phase === "SUCCEEDED")`,
    focus: ["repeats", "gated", "planned"],
  },
  {
    name: "double commit",
    file: "kernel/apply/task.ts",
    find: `  if (other) voidClaim(state, other);
  dropClaim(state, claim);
  endTask(state, task, "SUCCEEDED", event.at);
}

export function applyReused`,
    replace: `  dropClaim(state, claim);
  if (!other) endTask(state, task, "SUCCEEDED", event.at);
}

export function applyReused`,
    focus: ["straggler"],
  },
  {
    name: "a token is its executor's own",
    file: "kernel/decide/claim.ts",
    find: "if (claim?.token === command.token && claim.executor.id === command.executor) return { claim };",
    replace: "if (claim?.token === command.token) return { claim };",
    focus: ["lies"],
  },
  {
    name: "lost requeue",
    file: "kernel/decide/due.ts",
    find: `return does({ kind: "requeued", task: task.no, at: nowMs });`,
    replace: "return nothing;",
    focus: [],
  },
  {
    name: "expiry by a jumped store clock",
    file: "shard/host/kernel-clock.ts",
    find: "const makeUpMs = passedMs * slew;",
    replace: "const makeUpMs = Number.MAX_SAFE_INTEGER;",
    focus: ["store-clock-jump"],
  },
  {
    name: "expiry by a sleep of the owner",
    file: "kernel/step.ts",
    find: "if (passedMs > state.limits.sleepMs && state.nowMs > 0)",
    replace: "if (passedMs < 0)",
    focus: ["node-stop", "slow-network", "endless"],
  },
  {
    name: "a fresh lease for every claim at a take-over",
    file: "kernel/apply/apply.ts",
    find: "return refreshLeases(state, event.at, state.nowMs - wasMs);",
    replace: "return;",
    focus: ["node-crash"],
  },
  {
    name: "commit without pin",
    file: "kernel/decide/finish.ts",
    find: "  if (unproven) return reject(unproven);\n  const { job } = task.stage;",
    replace: "  const { job } = task.stage;",
    focus: ["invents"],
  },
  {
    name: "what a failed attempt leaves is pinned",
    file: "kernel/decide/finish.ts",
    find: "  if (unproven) return reject(unproven);\n  const left",
    replace: "  const left",
    focus: ["invents"],
  },
  {
    name: "checkpoint without pin",
    file: "kernel/decide/checkpoint.ts",
    find: "wrongEvidence(checkpoint.digests, evidence) ??",
    replace: "",
    focus: ["invents"],
  },
  {
    name: "stale checkpoint",
    file: "kernel/decide/checkpoint.ts",
    find: `  if (!found.claim) return reject(found.why);
  const { task } = found.claim;
  const { checkpoint: last } = task;`,
    replace: `  if (!found.claim && found.task && found.task.phase === "RUNNING")
    return accept({ recorded: true }, [{ kind: "checkpointed", task: command.task, token, checkpoint, at: nowMs }]);
  if (!found.claim) return reject(found.why);
  const { task } = found.claim;
  const { checkpoint: last } = task;`,
    focus: ["stalls", "single"],
  },
  {
    name: "the next attempt gets the last checkpoint",
    file: "kernel/decide/claim.ts",
    find: "if (task.checkpoint) {",
    replace: "if (task.checkpoint && task.attempts < 2) {",
    focus: ["single", "vanishes"],
  },
  {
    name: "key reuse",
    file: "kernel/decide/submit.ts",
    find: "if (known.payloadHash !== submit.payloadHash)",
    replace: "if (known.payloadHash === undefined)",
    focus: ["forges"],
  },
  {
    name: "a key that only the journal remembers",
    file: "kernel/decide/submit.ts",
    find: "return submit.keyFound;",
    replace: "return undefined;",
    focus: ["repeats"],
  },
  {
    name: "keys are looked for in the journal once memory let go of them",
    file: "kernel/apply/soft.ts",
    find: "state.keysElsewhereUntilMs = Math.max(state.keysElsewhereUntilMs, event.elsewhereUntilMs);",
    replace: "",
    focus: ["repeats"],
  },
  {
    name: "keys are looked for once more when long texts are stored",
    file: "shard/host/prepare.ts",
    find: `command = await kept;
        keyFound = await this.#keyFound(shard, submit);`,
    replace: "command = await kept;",
    focus: ["blobs-slow", "doubling-network"],
  },
  {
    name: "who only joins begins nothing",
    file: "kernel/decide/submit.ts",
    find: `if (submit.joinOnly) return reject({ kind: "nothing-to-join", mergeKey: submit.mergeKey ?? "" });`,
    replace: "",
    focus: ["joins"],
  },
  {
    name: "only the owner says that there is nothing to join",
    file: "shard/host/batch.ts",
    find: `    case "nothing-to-join":`,
    replace: "",
    focus: ["joins", "merged", "node-stop", "store-clock-jump", "database-cut-off"],
  },
  {
    name: "a job that ends is no longer joined",
    file: "kernel/apply/stage.ts",
    find: `  unmerge(state, job);
  leaveLock(state, { job, stage: undefined });`,
    replace: "  leaveLock(state, { job, stage: undefined });",
    focus: ["joins", "merged"],
  },
  {
    name: "who joins sets the pace",
    file: "kernel/decide/submit.ts",
    find: "priority: Math.max(job.priority, submit.priority),",
    replace: "priority: job.priority,",
    focus: ["joins", "merged"],
  },
  {
    name: "lock handed on too early",
    file: "kernel/ready/locks.ts",
    find: "stage ? isEnded(stage.phase) && stage.claims === 0 : isEnded(job.phase) && job.claims === 0;",
    replace: "stage ? isEnded(stage.phase) : isEnded(job.phase);",
    focus: ["lockedEndless", "stalls"],
  },
  {
    name: "a task's lock waits for all of its claims",
    file: "kernel/ready/locks.ts",
    find: "if (task) return task.claims === 0 && (isEnded(task.task.phase) || isHeldBack(task.task));",
    replace: "if (task) return isEnded(task.task.phase) || isHeldBack(task.task);",
    focus: ["lockedTasks", "stalls"],
  },
  {
    name: "a task waits for its lock",
    file: "kernel/apply/task-lock.ts",
    find: "if (!task.template.lock) return toReady(state, task, atMs);",
    replace: "if (task.no > 0) return toReady(state, task, atMs);",
    focus: ["lockedTasks"],
  },
  {
    name: "a snapshot keeps the locks of tasks",
    file: "kernel/snapshot/restore.ts",
    find: "this.#state.locks.tasks.set(taskNo, lock);",
    replace: "",
    focus: ["lockedTasks", "node-crash"],
  },
  {
    name: "a planner that is stuck is replaced",
    file: "kernel/apply/moves.ts",
    find: "Math.min(task.template.attemptMs, planAttemptMsMax)",
    replace: "task.template.attemptMs",
    focus: ["planned", "gated"],
  },
  {
    name: "a planned stage waits for the lock that its plan names",
    file: "kernel/apply/stage.ts",
    find: 'if (!decides.lock || (stage.lockState === "held" && stage.lock?.name === decides.lock.name))',
    replace: "if (stage.planned !== null)",
    focus: ["decided"],
  },
  {
    name: "a lock is taken after planning, so that a stage that is skipped takes none",
    file: "kernel/apply/settle.ts",
    find: `  if (shape.lock && stage.lockState === "none")
    return [
      { kind: "lock-queued", job: job.no, stage: stage.index, at: nowMs },
      ...displacements(state, job.tenant.name, shape.lock, nowMs),
    ];`,
    replace: `  if (shape.plan && !stage.lock)
    stage.lock = { name: "stage-0", limit: 1, queueMax: 100, cancelInProgress: true };
  if (stage.lock && stage.lockState === "none")
    return [
      { kind: "lock-queued", job: job.no, stage: stage.index, at: nowMs },
      ...displacements(state, job.tenant.name, stage.lock, nowMs),
    ];`,
    focus: ["decided"],
  },
  {
    name: "who cancels a job spares what cleans up after it",
    file: "kernel/apply/stage.ts",
    find: "if (isSoft && isSpared(stage)) {",
    replace: "if (isSoft && stage.index < 0) {",
    focus: ["cleaned", "cancels"],
  },
  {
    name: "a planner from before the cancellation is not heard",
    file: "kernel/apply/stage.ts",
    find: "    voidClaim(state, planning.claim);\n    planning.attempts -= 1;\n  }",
    replace: "    return;\n  }",
    focus: ["cleaned", "cancels"],
  },
  {
    name: "a signal that was acknowledged is not sent again",
    file: "kernel/decide/claim.ts",
    find: "gate.signals.slice(from, from + signalsAtOnce).map((signal, i) => ({ ...signal, number: from + i + 1 }))",
    replace: "gate.signals.slice(0, signalsAtOnce).map((signal, i) => ({ ...signal, number: i + 1 }))",
    focus: ["told"],
  },
  {
    name: "no signal to a running task is passed over",
    file: "kernel/decide/claim.ts",
    find: "gate.signals.slice(from, from + signalsAtOnce).map((signal, i) => ({ ...signal, number: from + i + 1 }))",
    replace: "gate.signals.slice(-1).map((signal) => ({ ...signal, number: gate.signals.length }))",
    focus: ["told"],
  },
  {
    name: "second attempts keep to the slots that their template allows",
    file: "kernel/decide/due.ts",
    find: "isEarly || pace.spares >= slots",
    replace: "isEarly || slots === 0",
    focus: ["crowd"],
  },
  {
    name: "only a few attempts may be lost for nothing",
    file: "kernel/decide/finish.ts",
    find: "return attempts - Math.min(lost, lossesMax);",
    replace: "return attempts - lost;",
    focus: ["unlucky"],
  },
  {
    name: "each reason has attempts of its own",
    file: "kernel/decide/finish.ts",
    find: ">= (retries[reason] ?? 0)",
    replace: "> (retries[reason] ?? 0)",
    focus: ["choosy"],
  },
  {
    name: "work with outside effects waits for one that timed out",
    file: "kernel/decide/finish.ts",
    find: "mayRun ? Math.max(atMs, claim.expiresAtMs) : atMs",
    replace: "mayRun ? atMs : atMs",
    focus: ["lockedEndless"],
  },
  {
    name: "to start is to renew",
    file: "kernel/apply/task.ts",
    find: "claim.expiresAtMs = Math.max(claim.expiresAtMs, event.at + claim.leaseMs);",
    replace: "",
    focus: ["database-slow", "slow-network", "single", "locked"],
  },
  {
    name: "a snapshot keeps the planning of a stage",
    file: "kernel/snapshot/capture.ts",
    find: "isKept(stage.planning) && stage.tasks.every(isKept)",
    replace: "stage.tasks.every(isKept)",
    focus: ["gated", "planned"],
  },
  {
    name: "a job waits until its results are published",
    file: "kernel/apply/settle.ts",
    find: `if (phase === "SUCCEEDED" && job.outbox) return [];`,
    replace: "",
    focus: ["single"],
  },
  {
    name: "published is only what is durable",
    file: "shard/outbox/outbox.ts",
    find: "  durable(shard: HostedShard, { events }: SealedBatch): void {",
    replace: `  sealed(shard: HostedShard): void {
    if (this.#items.has(shard)) for (const waiting of shard.state.outbox.values()) this.#add(shard, waiting);
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {`,
    focus: ["single", "matrix", "database-slow", "database-refuses"],
  },
  {
    name: "a new owner publishes what the last one left",
    file: "shard/outbox/outbox.ts",
    find: "for (const waiting of shard.state.outbox.values()) this.#add(shard, waiting);",
    replace: "",
    focus: ["single", "matrix", "node-crash", "board-slow"],
  },
  {
    name: "quota is given back only after the smaller slice was taken",
    file: "shard/quota/quota-broker.ts",
    find: "    await give(shard.shard, {",
    replace: "    if (!isFewer) await give(shard.shard, {",
    focus: ["quota"],
  },
  {
    name: "feed gap: an owner says what it no longer keeps",
    file: "feed/desk.ts",
    find: `if (after < ring.after) return { kind: "behind", shard, after: ring.after };
  const news = ring.since(after, room.items, room.bytes);`,
    replace: `const news = ring.since(Math.max(after, ring.after), room.items, room.bytes);`,
    focus: ["readers"],
  },
  {
    name: "feed gap: a batch from before anyone asked is not an empty one",
    file: "feed/desk.ts",
    find: "else served.ring.reset(stamp.seq);",
    replace: "else served.ring.extend(stamp.seq - 1, stamp.seq, []);",
    focus: ["readers"],
  },
  {
    name: "feed gap: what the owner does not have is read from the log",
    file: "feed/hub.ts",
    find: `if (answer.kind === "behind") await this.#fill(ring, shard, answer.after);`,
    replace: `if (answer.kind === "behind") ring.extend(ring.through, answer.after, []);`,
    focus: ["readers"],
  },
  {
    name: "feed gap: a cursor inside a batch",
    file: "feed/reader.ts",
    find: "this.#positions[shard] = { seq: batch.seq - 1, skip: i };",
    replace: "this.#positions[shard] = { seq: batch.seq, skip: 0 };",
    focus: ["readers"],
  },
  {
    name: "feed gap: a replay begins before what is asked for",
    file: "feed/replayed.ts",
    find: "filter(({ seq, isBusy }) => !isBusy && seq <= after)",
    replace: "filter(({ isBusy }) => !isBusy)",
    focus: ["readers"],
  },
  {
    name: "feed gap: a kept state has nothing of what follows",
    file: "feed/base.ts",
    find: "filter(({ seq }) => seq <= after)",
    replace: "filter(() => true)",
    focus: ["readers"],
  },
  {
    name: "feed gap: a batch too large for an answer is read from the log",
    file: "feed/desk.ts",
    find: 'return isTooLarge ? { kind: "behind", shard, after: after + 1 } : undefined;',
    replace: "return undefined;",
    focus: ["readers"],
  },
  {
    name: "feed order: a replay says only what follows",
    file: "feed/replayed.ts",
    find: "replay(state, seq, payload, seq > after ? items : undefined);",
    replace: "replay(state, seq, payload, items);",
    focus: ["readers"],
  },
  {
    name: "feed order: a reader begins where its cursor stands",
    file: "feed/reader.ts",
    find: "const from = batch.seq === doneSeq + 1 ? skip : 0;",
    replace: "const from = 0;",
    focus: ["readers"],
  },
  {
    name: "a tenant reads only its own feed",
    file: "feed/filter.ts",
    find: "if (tenant !== undefined && item.tenant !== tenant) return false;",
    replace: "",
    focus: ["readers"],
  },
  {
    name: "items are made from the state that the event left",
    file: "feed/replayed.ts",
    find: "apply(state, event);\n      if (items) feedOf(state, event, { seq, index }, items);",
    replace: "if (items) feedOf(state, event, { seq, index }, items);\n      apply(state, event);",
    focus: ["readers"],
  },
  {
    name: "two jobs for one instant",
    file: "schedules/timer.ts",
    find: "const key = `schedule ${value.id} ${new Date(atMs).toISOString()}`;",
    replace: "const key = `schedule ${value.id} ${new Date(atMs).toISOString()} ${nowMs}`;",
    focus: ["schedules", "database-unheard", "node-crash"],
  },
  {
    name: "an instant is tried until it has its job",
    file: "schedules/timer.ts",
    find: "if (!isFinal(error)) throw error;",
    replace: "",
    focus: ["schedules", "database-outage"],
  },
];

export type Hunted = { readonly found: boolean; readonly what: string };

const huntMsMax = 10 * 60_000;

/** Removes the guard from a copy of the source and hunts there. */
export async function huntMutant(mutant: Mutant, root: string, seeds: number, focused: boolean): Promise<Hunted> {
  return await inCopy(root, async (copy) => {
    plant(mutant, join(copy, "src"));
    return await hunt(copy, seeds, focused ? mutant.focus : []);
  });
}

/** Of the source, without its tests. */
export async function inCopy<T>(root: string, work: (copy: string) => Promise<T>): Promise<T> {
  const copy = mkdtempSync(join(tmpdir(), "millrace-mutant-"));
  try {
    for (const name of ["package.json", "bin"]) cpSync(join(root, name), join(copy, name), { recursive: true });
    cpSync(join(root, "src"), join(copy, "src"), { recursive: true, filter: (path) => !path.endsWith(".test.ts") });
    mkdirSync(join(copy, ".git"), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    return await work(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

export function plant({ name, file, find, replace }: Mutant, src: string): void {
  const path = join(src, file);
  const text = readFileSync(path, "utf8");
  const times = text.split(find).length - 1;
  if (times !== 1) throw new Error(`mutant "${name}": its text occurs ${times} times in ${file}, not once`);
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
}

async function hunt(copy: string, seeds: number, focus: readonly string[]): Promise<Hunted> {
  const plan = ["--hunt", "--from", "1", "--seeds", `${seeds}`, "--focus", focus.join()];
  const args = [...plan, "--double-check", "off", "--no-coverage", "--quiet"];
  const child = spawn(process.execPath, [join(copy, "src/sim/main.ts"), ...args], { cwd: copy });
  let text = "";
  child.stdout.on("data", (part: Buffer) => (text += part.toString()));
  child.stderr.on("data", (part: Buffer) => (text += part.toString()));
  // A mutant may also cause an endless loop.
  const limit = setTimeout(() => child.kill("SIGKILL"), huntMsMax);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  clearTimeout(limit);
  const failed = /^FAILED (.*)$/m.exec(text)?.[1];
  const total = /^\d+ seeds .*$/m.exec(text)?.[0] ?? text.slice(-500);
  return { found: code === 1 && failed !== undefined, what: `${failed?.slice(0, 200) ?? "nothing found"} (${total})` };
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..", "..");
  const focused = process.argv.includes("--focused");
  const wanted = process.argv.slice(2).filter((argument) => argument !== "--focused");
  for (const mutant of mutants) {
    if (wanted.length > 0 && !wanted.some((part) => mutant.name.includes(part))) continue;
    const { found, what } = await huntMutant(mutant, root, 1_000, focused);
    console.log(`${found ? "found   " : "SURVIVED"} ${mutant.name}: ${what}`);
    if (!found) process.exitCode = 1;
  }
}
