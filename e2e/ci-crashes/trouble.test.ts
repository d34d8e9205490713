/**
 * Jobs on a runner elsewhere while something is away in the middle of a step: the node, the database, or the runner
 * itself for longer than its lease. The run ends right, an attempt has one end, and no line is missing or doubled.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createWorkerToken } from "#api/workers.ts";
import { callEndpoint } from "#http/client.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { RegisteredProcess } from "#e2e/elsewhere/worker-process.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { TestRepository } from "#e2e/ci/repository.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";
const lines = 60;
const wait = { limitMs: 60_000, everyMs: 50 };

const workflow = (url: string): string => `
on: workflow_dispatch
jobs:
  count:
    runs-on: [self-hosted, far]
    outputs: { last: "\${{ steps.c.outputs.last }}" }
    steps:
      - run: curl -fsS ${url}/first
      - id: c
        run: |
          for i in $(seq 1 ${lines}); do echo "line $i"; curl -fsS ${url}/beat > /dev/null; sleep 0.1; done
          echo "last=$i" >> "$GITHUB_OUTPUT"
      - run: curl -fsS ${url}/last
  tell: { needs: count, runs-on: [self-hosted, far], steps: [{ run: 'echo "to \${{ needs.count.outputs.last }}"' }] }
`;

/** A node that runs no jobs itself, runners that do, and an outside process that counts what steps do. */
class Scene implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly counts = new Map<string, number>();
  readonly node: NodeProcess;
  readonly ci: CiNode;
  #token = "";

  private constructor(node: NodeProcess) {
    this.node = node;
    this.ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(node.folder)) ?? "");
  }

  static async open(config: object = {}): Promise<Scene> {
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-trouble-"));
    const settings = { worker: { slots: 1 }, ci: { labels: ["near"] }, ...config };
    const scene = new Scene(await NodeProcess.open(folder, settings));
    scene.#stack.defer(() => clearAway(folder));
    scene.#stack.use(scene.node);
    const repository = new TestRepository({ ".github/workflows/w.yml": workflow(await scene.#count()) });
    scene.#stack.use(repository);
    await scene.ci.register("mill/flour", repository.folder);
    const body = { labels: ["door=ci", "isolation=sandbox", "runner=*"], uses: 2 };
    scene.#token = (await callEndpoint(scene.ci.fetch, createWorkerToken, { body })).token;
    return scene;
  }

  async runner(): Promise<RegisteredProcess> {
    const data = mkdtempSync(join(tmpdir(), "millrace-ci-runner-"));
    this.#stack.defer(() => clearAway(data));
    const args = ["--server", `http://${this.node.address}`, "--data", data, "--labels", "far"];
    return await this.#stack
      .use(new RegisteredProcess(this.#token, args, "runner"))
      .start()
      .isUp();
  }

  /** Starts the run, and waits until a line in the middle of its step is to be read. */
  async counting(): Promise<string> {
    const run = await this.ci.dispatch("mill/flour", "w");
    const log = async () => await this.ci.log(run, "count").catch(() => "");
    await until("it counts", async () => (await log()).includes("| line 10\n"), wait);
    return run;
  }

  /** The step does, whatever is away. */
  async goesOn(): Promise<void> {
    const beats = (): number => this.counts.get("/beat") ?? 0;
    const wanted = beats() + lines / 3;
    await until("the step goes on", () => beats() >= wanted, wait);
  }

  /** The whole log, each line once, and what the steps did outside. */
  async check(run: string, attempts: number): Promise<void> {
    const { conclusion, jobs } = await this.ci.ended(run, 120_000);
    deepEqual(
      [conclusion, ...jobs.map((job) => `${job.id} ${job.conclusion} ${job.attempts}`)],
      ["success", `count success ${attempts}`, "tell success 1"],
    );
    const texts = (await this.ci.log(run, "count"))
      .split("\n")
      .flatMap((line) => /\| (line \d+)$/.exec(line)?.[1] ?? []);
    const said = texts.slice(texts.lastIndexOf("line 1"));
    deepEqual(
      said,
      Array.from({ length: lines }, (_, i) => `line ${i + 1}`),
    );
    equal(texts.length, said.length, "no line of an attempt before is left");
    deepEqual([this.counts.get("/first"), this.counts.get("/last")], [1, 1]);
    ok((await this.ci.log(run, "tell")).includes(`| to ${lines}\n`));
  }

  async #count(): Promise<string> {
    const server = createServer((request, response) => {
      this.counts.set(request.url ?? "", (this.counts.get(request.url ?? "") ?? 0) + 1);
      response.end("ok\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#stack.defer(() => (server.closeAllConnections(), void server.close()));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** A process and all that it started: a machine that stands still. */
function treeOf(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => treeOf(Number(child))))];
  } catch {
    return []; // it has ended
  }
}

/** A command of the step may have ended since they were listed. */
function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      process.kill(pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
}

/** One that has ended and that its parent has not noticed is not alive. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

const postgres = await startPostgres();
after(() => postgres.stop());

// Beside one another on purpose: three clusters call their tasks alike, and have runners on one machine.
describe("a job in trouble", { concurrency: true, timeout: 240_000 }, () => {
  test("the node is killed and comes back: the runner has kept the log, and goes on", { skip }, async () => {
    await using scene = await Scene.open();
    await scene.runner();
    const run = await scene.counting();
    await scene.node.kill();
    await scene.goesOn();
    await scene.node.start();
    await scene.check(run, 1);
  });

  test("the database is away for a time", { skip: skip || postgres.skip }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-database-"));
    try {
      const keyFile = join(folder, "vault.key");
      writeFileSync(keyFile, `k1 ${Buffer.alloc(32, 7).toString("base64")}\n`, { mode: 0o600 });
      const url = await postgres.server().freshDatabase();
      await using scene = await Scene.open({ journal: { kind: "postgres", url }, vault: { keyFile } });
      await scene.runner();
      const run = await scene.counting();
      await postgres.server().stop("kill");
      await scene.goesOn();
      await postgres.server().start();
      await scene.check(run, 1);
    } finally {
      clearAway(folder);
    }
  });

  test("a runner that stood still past its lease changes nothing when it goes on", { skip }, async () => {
    await using scene = await Scene.open();
    const first = await scene.runner();
    const before = new Set(treeOf(first.pid));
    const run = await scene.counting();
    const tree = treeOf(first.pid);
    const ofJob = tree.filter((pid) => !before.has(pid));
    ok(ofJob.length > 1, "the job's processes stand still as well");
    signal(tree, "SIGSTOP");
    await scene.runner();
    const attempts = async () => (await scene.ci.show(run)).jobs[0]?.attempts;
    await until("another runner has the job", async () => (await attempts()) === 2, { limitMs: 90_000, everyMs: 200 });
    signal(tree, "SIGCONT");
    await scene.check(run, 2);
    await until("what ran for the lost claim has ended", () => !ofJob.some(isAlive), wait);
  });
});
