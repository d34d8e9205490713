/** BullMQ on a Redis that syncs every write, as durable as the others. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findProgram, loadPeer, versions } from "./install.ts";
import { inThousands, type Found } from "./peer.ts";

type Library = {
  Queue: new (
    name: string,
    options: object,
  ) => { addBulk(jobs: readonly object[]): Promise<unknown>; close(): Promise<void> };
  Worker: new (
    name: string,
    run: () => Promise<void>,
    options: object,
  ) => { on(event: "completed", listener: () => void): void; on(event: "error", listener: () => void): void } & {
    close(): Promise<void>;
  };
};

const concurrency = 200;

export async function bullmq(): Promise<Found> {
  const program = findProgram("redis-server");
  if (program === undefined) return { missing: "redis-server is not on the PATH" };
  const { Queue, Worker } = await loadPeer<Library>("bullmq");
  const redis = await startRedis(program);
  const connection = { host: "127.0.0.1", port: redis.port, maxRetriesPerRequest: null };
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });
  return {
    peer: {
      name: `BullMQ ${versions.bullmq}`,
      how: `addBulk of 1,000; concurrency ${concurrency}; Redis with appendfsync always`,
      async fill(tasks) {
        await inThousands(
          tasks,
          (no) => ({ name: "noop", data: { no } }),
          (jobs) => queue.addBulk(jobs),
        );
      },
      async drain(tasks) {
        let done = 0;
        const all = Promise.withResolvers<void>();
        const startedMono = performance.now();
        const worker = new Worker("bench", async () => {}, { connection, concurrency });
        worker.on("error", () => {});
        worker.on("completed", () => {
          done += 1;
          if (done === tasks) all.resolve();
        });
        await all.promise;
        const tookMs = performance.now() - startedMono;
        await worker.close();
        return tookMs;
      },
      async close() {
        await queue.close();
        await redis.stop();
      },
    },
  };
}

async function startRedis(program: string): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), "millrace-bench-redis-"));
  const port = await freePort();
  const flags = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, "--save", ""];
  const child = spawn(program, [...flags, "--appendonly", "yes", "--appendfsync", "always"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await untilReady(child);
  return {
    port,
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function untilReady(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once("error", reject);
  child.once("exit", (code) => reject(new Error(`redis-server ended with code ${code}`)));
  if (child.stdout) createInterface(child.stdout).on("line", (line) => line.includes("Ready to accept") && resolve());
  await promise;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
