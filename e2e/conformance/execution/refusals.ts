/** Items 51 to 60: what an action needs, what it may ask for, and how it is refused. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { hashHex } from "#blobs/hashing.ts";
import { noCommand } from "#doors/build/testing/build.ts";
import {
  Action,
  Command,
  Directory,
  ExecutionStage_Value as Stage,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { encode } from "#wire/message.ts";
import {
  begin,
  isCached,
  make,
  metadataOf,
  onWorkers,
  outputText,
  printed,
  ranWell,
  refusal,
  refused,
  run,
  saysWhenToRetry,
  seconds,
  sh,
  violationsOf,
} from "#e2e/conformance/actions.ts";
import { needs, type Case } from "#e2e/conformance/case.ts";
import { code, fresh, functionNumbers, nothing, upload } from "#e2e/conformance/lab.ts";
import { fileNode } from "#e2e/conformance/trees.ts";

const subjectOf = ({ hash, sizeBytes }: { hash: string; sizeBytes: number }) => `MISSING blobs/${hash}/${sizeBytes}`;

/** Other bytes each time, so that no server has seen them. */
const inputs = () => ({ "a/b/deep": fresh(), "a/shallow": fresh(), here: fresh(), "other/one": fresh() });

const withholding: readonly (readonly string[])[] = [
  ["action"],
  ["command"],
  ["here"],
  ["a/b/deep", "here"],
  ["a/b/"],
  ["/"],
  ["command", "a/b/", "here"],
  ["command", "a/b/deep", "a/shallow", "here", "other/one"],
];

const property = (name: string, value: string) => ({ platform: { properties: [{ name, value }] } });
const isRefusal = [code.invalid, code.precondition];

export const refusalCases: readonly Case[] = [
  ...withholding.map((withhold) =>
    onWorkers(51, `all that is missing is told, and nothing else: ${withhold.join(", ")}`, async (lab) => {
      const { digest, withheld } = await make(lab, ["true"], { inputs: inputs(), withhold });
      const status = await refusal(lab, digest);
      equal(status.code, code.precondition, status.message);
      deepEqual(violationsOf(status), withheld.map(subjectOf).toSorted());
    }),
  ),
  onWorkers(51, "what is missing under another digest function is told with its name", async (lab) => {
    const functions = lab.capabilities.executionCapabilities?.digestFunctions ?? [];
    needs(functions.includes(functionNumbers.blake3), "a server that executes by BLAKE3");
    const bytes = fresh();
    const digest = { hash: hashHex("blake3", bytes), sizeBytes: bytes.length };
    const status = await refusal(lab, digest, { digestFunction: functionNumbers.blake3 });
    equal(status.code, code.precondition, status.message);
    deepEqual(violationsOf(status), [`MISSING blobs/blake3/${digest.hash}/${digest.sizeBytes}`]);
  }),
  onWorkers(51, "what was missing is uploaded, and then it runs", async (lab) => {
    const late = fresh();
    const { digest } = await make(lab, ["cat", "late"], { inputs: { late }, withhold: ["late"] });
    equal((await refusal(lab, digest)).code, code.precondition);
    await upload(lab, late);
    await ranWell(lab, digest);
  }),
  onWorkers(52, "an input that is lost while the action waits is missing, too", async (lab) => {
    const forget = needs(lab.forget, "a way to have the server let go of blobs");
    const client = needs(lab.narrow, "somebody whose actions run one at a time");
    const narrow = { ...lab, client };
    const { ended } = await begin(narrow, await sh(narrow, "sleep 3"));
    const action = await sh(narrow, "cat late", { inputs: { late: fresh() } });
    let isForgotten = false;
    const each = async (operation: Operation): Promise<void> => {
      if (isForgotten || metadataOf(operation).stage !== Stage.QUEUED) return;
      await forget();
      isForgotten = true;
    };
    const status = await refusal(narrow, action, { each });
    await ended;
    ok(isForgotten, "it waited");
    equal(status.code, code.precondition, status.message);
    const told = violationsOf(status);
    ok(told.length > 0 && told.every((one) => one.startsWith("MISSING blobs/")), told.join(", "));
  }),
  ...(["action", "command", "directory"] as const).map((what) =>
    onWorkers(53, `what is no ${what} is refused`, async (lab) => {
      const garbage = await upload(lab, Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0x01]), fresh(40)]));
      const made = await make(lab, ["true"], {
        ...(what === "directory" && { root: garbage }),
        ...(what === "command" && { action: { commandDigest: garbage } }),
      });
      await refused(lab, what === "action" ? garbage : made.digest, [code.invalid], `Execute with a bad ${what}`);
    }),
  ),
  onWorkers(53, "directories and commands in another order than the canonical one are executed", async (lab) => {
    const [b, a] = [await upload(lab, Buffer.from("2")), await upload(lab, Buffer.from("1"))];
    const files = [fileNode("b", b), fileNode("a", a)];
    const root = await upload(lab, encode(Directory, { files, directories: [], symlinks: [] }));
    const environmentVariables = ["Z", "PATH", "A"].map((name) => ({ name, value: "/usr/bin:/bin" }));
    const command = { outputPaths: ["z", "o"], environmentVariables };
    const { result } = await ranWell(lab, await sh(lab, "cat a b > o", { root, command }));
    equal(await outputText(lab, result, "o"), "12");
  }),
  onWorkers(53, "an action without a digest of its command is refused", async (lab) => {
    const bytes = encode(Action, { inputRootDigest: nothing, doNotCache: false, salt: fresh(8) });
    await refused(lab, await upload(lab, bytes), [code.invalid], "Execute");
  }),
  onWorkers(53, "the empty directory is an input tree that nobody has to upload", async (lab) => {
    await ranWell(lab, await sh(lab, "true", { root: nothing }));
  }),
  onWorkers(54, "a timeout that is too long or negative is refused", async (lab) => {
    for (const years of [1_000, -1]) {
      const action = { timeout: { seconds: years * 365 * 86_400, nanos: 0 } };
      await refused(lab, await sh(lab, "true", { action }), [code.invalid], `${years} years`);
    }
  }),
  onWorkers(54, "without a timeout the server's own counts", async (lab) => {
    await ranWell(lab, await sh(lab, "sleep 0.1"));
  }),
  onWorkers(55, "a command that takes too long ends so, with what it made, and is not cached", async (lab) => {
    const line = "echo begun > o; mkdir d; echo in > d/f; echo so far; echo oh >&2; sleep 60; echo late > o";
    const command = { outputPaths: ["o", "d"] };
    const action = await sh(lab, line, { command, action: { timeout: seconds(1) } });
    const { response, result } = await run(lab, action);
    equal(response.status?.code, code.deadline, response.status?.message ?? "");
    equal(await printed(lab, result, "stdout"), "so far\n");
    equal(await printed(lab, result, "stderr"), "oh\n");
    equal(await outputText(lab, result, "o"), "begun\n");
    equal(result.outputDirectories[0]?.path, "d");
    equal(await isCached(lab, action), false);
  }),
  onWorkers(56, "the time in the queue does not count", async (lab) => {
    const all = Array.from({ length: 12 }, async () => {
      const action = await sh(lab, "sleep 0.6", { action: { timeout: seconds(1.5), doNotCache: true } });
      return await ranWell(lab, action);
    });
    for (const { result } of await Promise.all(all)) {
      const { virtualExecutionDuration: took } = result.executionMetadata ?? {};
      ok(took, "virtual_execution_duration");
      const ms = took.seconds * 1_000 + took.nanos / 1e6;
      ok(ms >= 590 && ms < 1_600, `virtual_execution_duration is ${ms} ms`);
    }
  }),
  onWorkers(56, "the time that inputs take to come does not count", async (lab) => {
    const files = Array.from({ length: 2_000 }, (_, i) => [`in/d${i % 50}/f${i}`, `${i} ${fresh(8).toString("hex")}`]);
    const action = { timeout: seconds(0.7) };
    const inputTree = Object.fromEntries(files) as Record<string, string>;
    const { result } = await ranWell(lab, await sh(lab, "ls -d in/*/* | wc -l", { inputs: inputTree, action }));
    equal((await printed(lab, result, "stdout")).trim(), "2000");
  }),
  onWorkers(57, "what no worker can run is told so, and not for ever queued", async (lab) => {
    const action = await sh(lab, "true", { action: property("OSFamily", "no-such-system") });
    await refused(lab, action, isRefusal, "Execute for a system that nobody has");
  }),
  onWorkers(58, "a full queue is told as such, with the time to come back", async (lab) => {
    const client = needs(lab.narrow, "somebody of whose actions three may wait");
    const narrow = { ...lab, client };
    const actions = await Promise.all(Array.from({ length: 8 }, (_, i) => sh(narrow, `sleep 0.3 # ${i}`)));
    const statuses = await Promise.all(actions.map((action) => refusal(narrow, action)));
    const full = statuses.filter((status) => status.code !== 0);
    ok(full.length >= 1 && full.length <= 7, `${full.length} of 8 were refused`);
    for (const status of full) {
      equal(status.code, code.exhausted, status.message);
      ok(saysWhenToRetry(status), "RetryInfo");
    }
  }),
  onWorkers(59, "a property that nobody knows is refused", async (lab) => {
    const action = await sh(lab, "true", { action: property(`frobnicator-${fresh(4).toString("hex")}`, "on") });
    await refused(lab, action, isRefusal, "Execute with a property of unknown name");
  }),
  onWorkers(59, "a property may be given twice", async (lab) => {
    const [first] = lab.platform;
    const { name, value } = needs(first, "a property that workers offer");
    const properties = [{ name, value }, ...lab.platform];
    await ranWell(lab, await sh(lab, "true", { action: { platform: { properties } } }));
  }),
  onWorkers(60, "the platform of the action counts, not the command's", async (lab) => {
    const absurd = property("OSFamily", "no-such-system");
    const properties = needs(lab.platform.length > 0 && lab.platform, "a property that workers offer");
    await ranWell(lab, await sh(lab, "true", { command: absurd, action: { platform: { properties } } }));
  }),
  onWorkers(60, "the command's platform counts where the action has none", async (lab) => {
    const bytes = encode(Command, { ...noCommand, arguments: ["true"], ...property("OSFamily", "no-such-system") });
    const commandDigest = await upload(lab, bytes);
    const bare = encode(Action, { commandDigest, inputRootDigest: nothing, doNotCache: false, salt: fresh(8) });
    await refused(lab, await upload(lab, bare), isRefusal, "Execute for a system that nobody has");
  }),
];
