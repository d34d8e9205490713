/** A node that is killed with -9 while it runs actions, and comes back in time: running actions go on, and end once. */
import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Bench, play } from "#e2e/node/build/execution-lab.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { Execution } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { isAlive } from "#worker/process/launcher/proc.ts";
import { Program } from "#e2e/bazel/program.ts";

const seconds = (n: number) => ({ seconds: n, nanos: 0 });
const uuid = "cat /proc/sys/kernel/random/uuid";

class Rig implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "millrace-adopt-"));
  readonly actionsIn: string;
  #program: Program | undefined;

  constructor() {
    chmodSync(this.#folder, 0o711);
    this.actionsIn = join(this.#folder, "actions");
    mkdirSync(this.actionsIn, { mode: 0o711 });
  }

  async open(): Promise<void> {
    this.#program = await Program.open(join(this.#folder, "data"), this.actionsIn);
  }

  get program(): Program {
    if (!this.#program) throw new Error("not open");
    return this.#program;
  }

  bench(): Bench {
    const [host = "", port = ""] = this.program.address.split(":");
    return new Bench(
      new GrpcClient({ clock, authority: "adopt", connect: () => connectH2({ host, port: Number(port), clock }) }),
    );
  }

  /** What actions have printed so far, by their folders. */
  printed(): readonly string[] {
    return globSync(`${this.actionsIn}/attempts/*/stdout`).map((path) => readFileSync(path, "utf8"));
  }

  file(name: string): string | undefined {
    return globSync(join(this.actionsIn, "attempts", "*", "root", name))[0];
  }

  /** Of the one that printed it: there is a folder for the next one as well. */
  rootOf(said: string): string {
    const printed = globSync(`${this.actionsIn}/attempts/*/stdout`).find((path) => readFileSync(path, "utf8") === said);
    return printed?.replace(/stdout$/, "root") ?? "";
  }

  /** Executes until it runs, and returns its name and what it has printed by then. */
  async running(line: string): Promise<{ readonly name: string; readonly said: string }> {
    const bench = this.bench();
    const stream = bench.stream(
      await bench.sh(
        `${line} # ${randomUUID()}`,
        { outputPaths: ["o"] },
        {},
        {
          timeout: seconds(120),
        },
      ),
    );
    const { value } = await stream.next();
    void (async () => {
      for await (const _ of stream);
    })().catch(() => {});
    await until("it runs", () => this.printed().some((text) => text.endsWith("\n")));
    return { name: value?.name ?? "", said: this.printed().join("") };
  }

  async told(name: string): Promise<{ stdout: string; stages: readonly number[]; code: number }> {
    const bench = this.bench();
    const { response, stages } = await play(bench.grpc.serverStream(Execution.methods.waitExecution, { name }));
    equal(response.status?.code ?? 0, 0, response.status?.message ?? "");
    const digest = response.result?.stdoutDigest;
    const raw = Buffer.from(response.result?.stdoutRaw ?? "").toString();
    return { stdout: raw || (digest?.hash ?? ""), stages, code: response.result?.exitCode ?? -1 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program?.stop();
    clearAway(this.#folder);
  }
}

describe("a node that is killed and comes back in time", { timeout: 200_000 }, () => {
  test("continues with what runs: the same process ends it, and nothing is run twice", async () => {
    await using rig = new Rig();
    await rig.open();
    const { name, said } = await rig.running(
      `${uuid}; echo $$ > pid; while ! test -e go; do sleep 0.05; done; echo end`,
    );
    const launcher = JSON.parse(readFileSync(join(rig.actionsIn, "launcher.json"), "utf8")) as { pid: number };
    await rig.program.kill();
    await rig.program.start();
    deepEqual(rig.printed(), [said], "one attempt, the same as before");
    ok(isAlive(launcher.pid));
    const waiting = rig.told(name);
    writeFileSync(rig.file("pid")?.replace(/pid$/, "go") ?? "", "");
    const { stdout, code } = await waiting;
    deepEqual([stdout, code], [`${said}end\n`, 0]);
    await until("its folder is gone", () => rig.printed().length === 0);
  });

  test("reports what ended while it was down", async () => {
    await using rig = new Rig();
    await rig.open();
    const { name, said } = await rig.running(`${uuid}; while ! test -e go; do sleep 0.05; done; echo made > o; exit 0`);
    await rig.program.kill();
    writeFileSync(join(rig.rootOf(said), "go"), "");
    await until("it has ended", () => rig.file("o") !== undefined);
    await rig.program.start();
    const { stdout, code } = await rig.told(name);
    deepEqual([stdout, code], [said, 0]);
  });

  test("and one that comes back too late finds it dead, and runs it again", async () => {
    await using rig = new Rig();
    await rig.open();
    const { name, said } = await rig.running(`${uuid}; echo $$ > pid; sleep 12`);
    await rig.program.kill();
    await until("the lease is over, and the tree dead", () => !isAsleep(), { limitMs: 60_000 });
    await rig.program.start();
    const { stdout, code } = await rig.told(name);
    equal(code, 0);
    notEqual(stdout, said);
  });
});

const isAsleep = (): boolean =>
  globSync("/proc/[0-9]*/cmdline").some((path) => read(path).split("\0").join(" ") === "sleep 12 ");

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
