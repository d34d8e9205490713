/** A real compiler as a persistent tool, and a node that is killed beside it. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Bench, type Played } from "#e2e/node/build/execution-lab.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { noCommand } from "#doors/build/testing/build.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import {
  Action,
  Command,
  ContentAddressableStorage,
  Directory,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode, encode } from "#wire/message.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { Program } from "#e2e/bazel/program.ts";

const hasJava = spawnSync("javac", ["-version"]).status === 0;
const skip = process.platform !== "linux" ? "needs linux" : !hasJava && "needs a JDK: javac";

type Usage = { readonly cpuMs: number; readonly ranMs: number; readonly tool?: { asked?: number; without?: string } };

describe("a persistent compiler", { skip, timeout: 180_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-tools-"));
  const actionsIn = join(folder, "actions");
  let program: Program;
  let bench: Bench;
  const tool: { readonly name: string; readonly bytes: Buffer }[] = [];
  before(async () => {
    chmodSync(folder, 0o711);
    mkdirSync(actionsIn, { mode: 0o711 });
    const classes = join(folder, "classes");
    execFileSync("javac", ["-d", classes, join(import.meta.dirname, "JavacTool.java")]);
    for (const name of readdirSync(classes)) tool.push({ name, bytes: readFileSync(join(classes, name)) });
    program = await Program.open(join(folder, "data"), actionsIn);
    const [host = "", port = ""] = program.address.split(":");
    const connect = () => connectH2({ host, port: Number(port), clock });
    bench = new Bench(new GrpcClient({ clock, authority: "tools", connect }));
  });
  after(async () => {
    bench.grpc.close();
    await program.stop();
    clearAway(folder);
  });

  async function compile(source: string, isMarked = true): Promise<Played> {
    const marked = { nodeProperties: { properties: [{ name: "bazel_tool_input", value: "" }] } };
    const file = async (name: string, bytes: string | Uint8Array, isTool = false) => ({
      name,
      digest: await bench.put(bytes),
      isExecutable: false,
      ...(isTool && isMarked && marked),
    });
    const own = await Promise.all(tool.map(({ name, bytes }) => file(name, bytes, true)));
    const files = [await file("Mill.java", source), await file("words", "-d\nout\nMill.java\n"), ...own];
    const root = { files: files.toSorted((a, b) => (a.name < b.name ? -1 : 1)), directories: [], symlinks: [] };
    const command: Command = {
      ...noCommand,
      arguments: ["/usr/bin/java", "-cp", ".", "JavacTool", "@words"],
      environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }],
      outputPaths: ["out"],
    };
    const action: Action = {
      commandDigest: await bench.put(encode(Command, command)),
      inputRootDigest: await bench.put(encode(Directory, root)),
      doNotCache: false,
      salt: new Uint8Array(),
      platform: { properties: [{ name: "persistentWorkerKey", value: "javac" }] },
    };
    return await bench.execute(await bench.put(encode(Action, action)));
  }

  const usageOf = ({ response }: Played): Usage => {
    const [usage] = response.result?.executionMetadata?.auxiliaryMetadata ?? [];
    ok(usage, JSON.stringify(response));
    return JSON.parse(decode(StringValue, usage.value).value) as Usage;
  };
  const source = (no: number): string => `final class Mill { static String flour() { return "sack ${no}"; } }`;
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

  test("compiles one action after the other, for a fraction of what it takes without", async (t) => {
    const plain: Usage[] = [];
    const kept: Usage[] = [];
    for (let no = 0; no < 8; no += 1) {
      const [without, by] = [await compile(source(no), false), await compile(source(no))];
      for (const { response } of [without, by]) equal(response.result?.exitCode, 0);
      deepEqual(by.response.result?.outputDirectories, without.response.result?.outputDirectories, "the same classes");
      plain.push(usageOf(without));
      kept.push(usageOf(by));
    }
    deepEqual(
      kept.map(({ tool: note }) => note),
      kept.map((_, at) => ({ asked: at + 1 })),
    );
    const cpu = (usages: readonly Usage[]): number => median(usages.slice(1).map(({ cpuMs }) => cpuMs));
    const ran = (usages: readonly Usage[]): number => median(usages.slice(1).map(({ ranMs }) => ranMs));
    t.diagnostic(`without: ${cpu(plain)} ms of CPU, ${ran(plain)} ms; kept: ${cpu(kept)} ms of CPU, ${ran(kept)} ms`);
    ok(cpu(kept) < cpu(plain) / 2, `${cpu(kept)} and ${cpu(plain)} ms of CPU`);
  });

  test("reports errors in a source as it would without", async () => {
    const { response } = await compile("class Mill { int flour() { return nothing; } }");
    equal(response.result?.exitCode, 1);
    const { hash = "", sizeBytes = 0 } = response.result?.stderrDigest ?? {};
    const { responses } = await bench.grpc.unary(ContentAddressableStorage.methods.batchReadBlobs, {
      instanceName: "",
      digests: [{ hash, sizeBytes }],
      acceptableCompressors: [],
      digestFunction: 0,
    });
    match(Buffer.from(responses[0]?.data ?? "").toString(), /cannot find symbol/);
  });

  test("dies with its node, even if that is killed with -9", async () => {
    await compile(source(100));
    ok(toolsAlive() > 0);
    await program.kill();
    await until("no compiler is left", () => toolsAlive() === 0);
  });

  /** Those that are in a folder of this test. */
  const toolsAlive = (): number =>
    readdirSync("/proc").filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return words[0] === "/usr/bin/java" && words.includes("JavacTool") && words.includes("--persistent_worker");
      } catch {
        return false;
      }
    }).length;
});
