/** The package as npm installs it: below node_modules, where Node strips no types by itself. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { dataFolder, publishedEdge } from "#app/node/data-folder.ts";
import { ownerToken } from "#app/node/owner-token.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { Bench, wireDigest } from "#e2e/node/build/execution-lab.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { ContentAddressableStorage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";

import { usesBatch } from "./batch-program.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-install-"));
after(() => clearAway(folder));
const root = join(import.meta.dirname, "..", "..");
const npm = (...args: readonly string[]): string =>
  execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 180_000 });

/** Uploads an action with an input file, has it executed and reads its output, as a build tool would. */
async function buildOne(data: string): Promise<string> {
  const url = publishedEdge(dataFolder(data))?.url;
  ok(url, "the node serves on a port");
  const { hostname: host, port } = new URL(url);
  const grpc = new GrpcClient({
    clock,
    authority: "installed",
    connect: () => connectH2({ host, port: Number(port), clock }),
    metadata: [["authorization", `Bearer ${await ownerToken(dataFolder(data))}`]],
  });
  try {
    const bench = new Bench(grpc);
    const action = await bench.sh(
      "mkdir -p out && tr a-z A-Z <grain >out/flour",
      { outputPaths: ["out/flour"] },
      {
        grain: "rye and oats",
      },
    );
    const { response } = await bench.execute(action, { inlineOutputFiles: ["out/flour"] });
    equal(response.status?.code ?? 0, 0, response.status?.message ?? "");
    equal(response.result?.exitCode, 0);
    const [output] = response.result.outputFiles;
    deepEqual(output?.digest, wireDigest(Buffer.from("RYE AND OATS")));
    const read = await grpc.unary(ContentAddressableStorage.methods.batchReadBlobs, {
      instanceName: "",
      digests: [output?.digest ?? wireDigest(Buffer.of())],
      acceptableCompressors: [],
      digestFunction: 0,
    });
    return Buffer.from(read.responses[0]?.data ?? []).toString();
  } finally {
    grpc.close();
  }
}

test(
  "the installed package starts a node with its launcher, runs a job and a build action",
  { timeout: 300_000 },
  async () => {
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    // `prepare` does that, and would build the console as well.
    execFileSync("npm", ["run", "batch:api"], { cwd: root, stdio: "ignore", timeout: 60_000 });
    npm("pack", root, "--ignore-scripts", "--pack-destination", folder);
    const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
    ok(tarball);
    npm("install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", `./${tarball}`);
    const command = join(folder, "node_modules", ".bin", "millrace");
    const data = join(folder, "data");
    const node = spawn(command, ["up", "--data", data, "--set", "edge.listen=127.0.0.1:0"], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exited = once(node, "exit");
    let log = "";
    const ready = Promise.withResolvers<void>();
    for (const stream of [node.stdout, node.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        log += text;
        if (log.includes("job submit")) ready.resolve();
      });
    try {
      await Promise.race([ready.promise, exited]);
      equal(node.exitCode, null, log);
      const submit = ["job", "submit", "--data", data, "--follow", "--", "echo", "hello"];
      match(execFileSync(command, submit, { cwd: folder, encoding: "utf8", timeout: 60_000 }), /hello/);
      equal(await buildOne(data), "RYE AND OATS");
      await usesBatch({ folder, data, root });
      equal(log.includes("start launcher"), false, log);
    } finally {
      node.kill();
      await exited;
    }
  },
);
