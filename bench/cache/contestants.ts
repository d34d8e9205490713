/** The contestants of `bench cache`: a node of ours and bazel-remote, each with a separate folder and process. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "#testing/free-port.ts";
import type { CacheAsked, CacheDid } from "./load.ts";
import { isOpen, Serving } from "#bench/edge/contestants.ts";
import { LoadProcess } from "#bench/load-process.ts";
import { findProgram } from "#bench/peers/install.ts";

export type Sync = "written" | "synced";

const root = join(import.meta.dirname, "..", "..");

async function listening(child: ChildProcess, port: number, folder: string, name: string): Promise<Serving> {
  const serving = new Serving([port], [child], () => rmSync(folder, { recursive: true, force: true }));
  for (let tries = 0; tries < 2_400; tries += 1) {
    if (child.exitCode !== null) break;
    if (await isOpen(port)) return serving;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  serving.stop();
  throw new Error(`${name} does not listen`);
}

/** As a user starts it: `millrace up`, with the limit and the folder set. */
export async function startMillrace(sync: Sync): Promise<Serving> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-cache-"));
  const port = await freePort();
  const config = join(folder, "millrace.yaml");
  writeFileSync(
    config,
    [
      "worker: { enabled: false }",
      `edge: { listen: ["127.0.0.1:${port}"] }`,
      `blobs: { kind: disk, sizeMax: 20GiB, sync: ${sync} }`,
    ].join("\n"),
  );
  // The flags of bin/millrace.js, whose own process would only wait for this one.
  const flags = ["--max-semi-space-size=64", join(root, "src/cli/main.ts")];
  const args = [...flags, "up", "--data", join(folder, "data"), "--config", config];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
  return await listening(child, port, folder, "millrace");
}

/** Undefined if it is not installed. It syncs every file before it acknowledges. */
export async function startBazelRemote(): Promise<Serving | undefined> {
  const program = process.env["BAZEL_REMOTE"] ?? findProgram("bazel-remote");
  if (program === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "millrace-bazel-remote-"));
  const [port, httpPort] = [await freePort(), await freePort()];
  const store = ["--dir", folder, "--max_size", "20", "--storage_mode", "uncompressed"];
  const ports = ["--grpc_address", `127.0.0.1:${port}`, "--http_address", `127.0.0.1:${httpPort}`];
  const child = spawn(program, [...store, ...ports, "--access_log_level", "none"], { stdio: "ignore" });
  return await listening(child, port, folder, "bazel-remote");
}

export class CacheLoad extends LoadProcess<CacheAsked, CacheDid> {
  constructor() {
    super(join(import.meta.dirname, "load.ts"), ["--max-semi-space-size=64"]);
  }
}
