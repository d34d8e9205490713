/** The contestants of `bench edge`, each in separate processes. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ContentAddressableStorage } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { freePort } from "#testing/free-port.ts";
import type { Asked, Did } from "./load.ts";
import type { ServerKind } from "./server.ts";
import type { StreamsAsked, StreamsDid } from "./streams-load.ts";
import { LoadProcess } from "#bench/load-process.ts";
import { processCpuUs, processMb } from "#bench/measure.ts";
import { fileVariable } from "#bench/peers/blobs.ts";
import { findProgram } from "#bench/peers/install.ts";

/** A running server, perhaps in several processes, each with its own port. */
export class Serving {
  readonly ports: readonly number[];
  readonly #children: readonly ChildProcess[];
  readonly #undo: () => void;

  constructor(ports: readonly number[], children: readonly ChildProcess[], undo: () => void = () => {}) {
    this.ports = ports;
    this.#children = children;
    this.#undo = undo;
    process.once("exit", this.stop); // however the benchmark ends
  }

  get port(): number {
    return this.ports[0] as number;
  }

  get cpuUs(): number {
    return this.#children.reduce((sum, { pid = 0 }) => sum + processCpuUs(pid), 0);
  }

  get memoryMb(): number {
    return this.#children.reduce((sum, { pid = 0 }) => sum + processMb(pid), 0);
  }

  readonly stop = (): void => {
    process.off("exit", this.stop);
    for (const child of this.#children) child.kill();
    this.#undo();
  };
}

export async function startServer(kind: ServerKind, processes = 1): Promise<Serving> {
  const children = Array.from({ length: processes }, () => fork(join(import.meta.dirname, "server.ts"), [kind]));
  const ports = await Promise.all(
    children.map(async (child) => ((await once(child, "message")) as [{ port: number }])[0].port),
  );
  return new Serving(ports, children);
}

/** Serves files, without gRPC: the cost of HTTP/2 in C. Undefined if it is not installed. */
export async function startNghttpd(answerBytes: number, blobMib: number, threads = 1): Promise<Serving | undefined> {
  const program = findProgram("nghttpd");
  if (program === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "millrace-nghttpd-"));
  const fileOf = (path: string): string => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    return file;
  };
  writeFileSync(fileOf(ContentAddressableStorage.methods.findMissingBlobs.path), Buffer.alloc(answerBytes, 7));
  const blob = fileOf(ByteStream.methods.read.path);
  writeFileSync(blob, "");
  truncateSync(blob, blobMib * 2 ** 20);
  const port = await freePort();
  const child = spawn(program, ["--no-tls", "-a", "127.0.0.1", "-n", `${threads}`, "-d", folder, `${port}`], {
    stdio: "ignore",
  });
  const serving = new Serving([port], [child], () => rmSync(folder, { recursive: true, force: true }));
  for (let tries = 0; tries < 200; tries += 1) {
    if (await isOpen(port)) return serving;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  serving.stop();
  throw new Error("nghttpd does not listen");
}

export const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

/** The file that servers started inside read as "file": in the page cache, because it was just written. */
export async function withBenchFile(mib: number, body: () => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-file-"));
  try {
    const path = join(folder, "blob");
    for (let i = 0; i < mib; i += 1) writeFileSync(path, Buffer.alloc(2 ** 20, i), { flag: "a" });
    process.env[fileVariable] = path;
    await body();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export class EdgeLoad extends LoadProcess<Asked, Did | StreamsDid> {
  constructor() {
    super(join(import.meta.dirname, "load.ts"));
  }

  calls(asked: Asked): Promise<Did> {
    return this.ask<Did>(asked);
  }

  streams(asked: StreamsAsked): Promise<StreamsDid> {
    return this.ask<StreamsDid>({ kind: "streams", ...asked });
  }
}
