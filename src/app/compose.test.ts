import { equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { startNode } from "./compose.ts";
import { Config } from "./config.ts";
import { dataFolder } from "./data-folder.ts";
import { followJob, showJob } from "./job-view.ts";
import { connectTo } from "./remote.ts";
import { orderFromCommand } from "./shell-job.ts";

test("a node in memory takes a job from a client that knows only its socket, and runs it", async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-node-"));
  const config = Config.parse({ cluster: { shards: 3 }, journal: { kind: "memory" }, blobs: { kind: "memory" } });
  const running = await startNode(config, dataFolder(path), { log: () => {} });
  try {
    await rejects(startNode(config, dataFolder(path), { log: () => {} }), (e) => isFault(e, "exhausted"));
    await using remote = connectTo(running.node.address);
    const order = orderFromCommand(["/bin/sh", "-c", "echo $MILLRACE_TASK $SECRET"], { tenant: "t", key: "once" });
    const { jobId, created } = await remote.work.submit(order);
    ok(created);
    equal((await remote.work.submit(order)).created, false);
    const follower = followJob(jobId);
    for await (const message of remote.work.watch(jobId, new AbortController().signal)) follower.lines(message);
    equal(follower.phase, "SUCCEEDED");
    const { view } = await remote.work.job(jobId);
    match(view.tasks[0]?.result?.payload ?? "", /"tail":"t[0-9a-z]+-1\\n"/);
    match(showJob(jobId, view, 0)[0] ?? "", /SUCCEEDED/);
    equal((await remote.work.jobs({ limit: 10 })).jobs[0]?.jobId, jobId);
    equal((await remote.work.shards()).length, 3);
    equal((await remote.status()).state, "up");
  } finally {
    await running.stop();
    await rm(path, { recursive: true });
  }
});
