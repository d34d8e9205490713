/** What happens to pods, and what becomes of their jobs: each is named, shown in `why`, and costs no finished step. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { image, PoolLab } from "./pool-lab.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";
const wait = { limitMs: 60_000, everyMs: 50 };

/** Its second step waits for the end of its pod, the first time. */
const twice = (marks: string, what: string): string => `
on: workflow_dispatch
jobs:
  long:
    runs-on: podded
    steps:
      - run: echo first >> ${marks}/${what}-steps
      - run: if [ ! -e ${marks}/${what} ]; then touch ${marks}/${what}; sleep 100; fi
      - run: echo last >> ${marks}/${what}-steps
`;
const on = (label: string): string => `
on: workflow_dispatch
jobs: { never: { runs-on: ${label}, steps: [{ run: "true" }] } }
`;

describe("pods that are lost or do not start", { skip, timeout: 240_000 }, () => {
  const marks = mkdtempSync(join(tmpdir(), "millrace-pool-marks-"));
  const whats = ["memory", "evicted", "spot"] as const;
  let repository: TestRepository;
  let lab: PoolLab;

  before(async () => {
    repository = new TestRepository({
      ...Object.fromEntries(whats.map((what) => [`.github/workflows/${what}.yml`, twice(marks, what)])),
      ".github/workflows/nowhere.yml": on("nowhere"),
      ".github/workflows/noimage.yml": on("noimage"),
    });
    lab = await PoolLab.open({
      pool: { max: 6, stopWithin: "0s", spot: true, startWithin: "5m" },
      templates: [
        { name: "far", runsOn: ["nowhere"], image, nodeSelector: { disk: "tape" } },
        { name: "lost", runsOn: ["noimage"], image: "gone:1" },
      ],
    });
    await lab.ci.register("mill/flour", repository.folder);
  });
  after(async () => {
    await lab[Symbol.asyncDispose]();
    repository[Symbol.dispose]();
    clearAway(marks);
  });

  /** The run and its pod, once its second step runs. */
  async function began(what: string): Promise<{ readonly run: string; readonly pod: string }> {
    const run = await lab.ci.dispatch("mill/flour", what);
    await until(`${what}: its second step runs`, () => existsSync(join(marks, what)), wait);
    await until("it is known who runs it", async () => (await lab.pool()).busy > 0, wait);
    const { machines } = await lab.pool();
    return { run, pod: machines.find(({ work }) => work === "busy")?.name ?? "" };
  }

  async function goesOn(run: string, what: string): Promise<void> {
    const shown = await lab.ci.ended(run, 60_000).catch(async (error: unknown) => {
      const about = [await lab.why(run), JSON.stringify(await lab.pool()), lab.node.log.slice(-3_000)];
      throw new Error([...about, ...lab.said.values()].join("\n"), { cause: error });
    });
    deepEqual(
      shown.jobs.map(({ conclusion }) => conclusion),
      ["success"],
    );
    equal(readFileSync(join(marks, `${what}-steps`), "utf8"), "first\nlast\n", "no finished step ran again");
  }

  test("out of memory: named as such with the pod's events, and the job goes on elsewhere", async () => {
    const { run, pod } = await began("memory");
    lab.nodes.outOfMemory(pod);
    let told = "";
    await until("why names it", async () => /out-of-memory|more memory than/.test((told = await lab.why(run))), wait);
    match(told, new RegExp(`${pod}: container runner used more memory than it may; `));
    await goesOn(run, "memory");
  });

  test("evicted: the same", async () => {
    const { run, pod } = await began("evicted");
    lab.nodes.evict(pod);
    let told = "";
    await until("why names it", async () => (told = await lab.why(run)).includes("low on resource"), wait);
    match(told, /The node was low on resource: memory\.; Evicted: /);
    await goesOn(run, "evicted");
  });

  test("a spot machine's notice: the job is given back with its finished steps, and goes on", async () => {
    const { run, pod } = await began("spot");
    lab.api.deleteByOthers(pod);
    await goesOn(run, "spot");
  });

  test("unschedulable, and an image that cannot be pulled: why says so, with what Kubernetes says", async () => {
    const [far, lost] = await Promise.all(["nowhere", "noimage"].map((what) => lab.ci.dispatch("mill/flour", what)));
    ok(far !== undefined && lost !== undefined);
    const told: string[] = [];
    const says = async (): Promise<boolean> => {
      told.splice(0, 2, await lab.why(far), await lab.why(lost));
      return (told[0] ?? "").includes("FailedScheduling") && (told[1] ?? "").includes("Failed to pull");
    };
    await until("both are explained", says, wait).catch((error: unknown) => {
      throw new Error(told.join("\n"), { cause: error });
    });
    match(told[0] ?? "", /pool linux makes a machine for it: .*\n.*unschedulable: 0\/1 nodes are available/);
    match(told[1] ?? "", /image-pull: Back-off pulling image "gone:1": not found/);
    await Promise.all([far, lost].map((run) => lab.ci.cancel(run)));
  });

  test("in the end no pod and no Secret is left", async () => {
    await until("all are gone", () => lab.api.pods.size + lab.api.secrets.size === 0, wait);
  });
});
