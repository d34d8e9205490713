// Kills a process that appends, again and again, and checks that everything acknowledged is there.
import { deepEqual, equal, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { own, readAll, seqs } from "#journal/testing/support.ts";
import { recordHash } from "#journal/record.ts";
import { sqliteJournal } from "./sqlite.ts";

const directoryVariable = "MILLRACE_TEST_CRASH_DIRECTORY";
const shards = [0, 1, 2];

/** The child: appends until it is killed; prints what was acknowledged, right after it was. */
async function appendForEver(directory: string): Promise<never> {
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: shards.length, clusterId: "crash" });
  const epochs = await Promise.all(shards.map((shard) => own(journal, shard, "child")));
  const next = await Promise.all(shards.map(async (shard) => (await journal.tail(shard)).seq + 1));
  for (let round = 1; ; round += 1) {
    const batches = shards.map((shard) => {
      const payload = new Uint8Array(randomBytes(randomInt(5000)));
      return { shard, epoch: epochs[shard] ?? 0, seq: next[shard] ?? 0, payload, keys: [] };
    });
    const { outcomes } = await journal.append(batches);
    for (const [i, { shard, seq, ...rest }] of batches.entries()) {
      if (outcomes[i] !== "appended") throw new Error(`shard ${shard} was fenced`);
      next[shard] = seq + 1;
      writeSync(1, `${shard} ${seq} ${recordHash({ shard, seq, ...rest })}\n`);
    }
    if (round % 5 === 0) {
      const [epoch = 0] = epochs;
      const chunks = (async function* () {
        yield new Uint8Array(100_000);
      })();
      await journal.saveSnapshot(0, { epoch, seq: (next[0] ?? 1) - 1 }, chunks);
    }
  }
}

async function killedAfter(lines: number, directory: string): Promise<string[]> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [import.meta.filename], {
    env: { ...env, [directoryVariable]: directory },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const acknowledged: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    acknowledged.push(line);
    if (acknowledged.length === lines) child.kill("SIGKILL");
  }
  await exited;
  ok(acknowledged.length >= lines, "the child ended before it was killed");
  return acknowledged;
}

const directory = process.env[directoryVariable];
if (directory !== undefined) await appendForEver(directory);
else
  test("J2 what SQLite acknowledged is there after kill -9, whole and in order", async () => {
    const root = await mkdtemp(join(tmpdir(), "millrace-crash-"));
    const acknowledged = new Map<string, string>();
    for (let round = 0; round < 10; round += 1) {
      for (const line of await killedAfter(1 + randomInt(60), root)) {
        const [shard, seq, hash] = line.split(" ");
        if (hash !== undefined) acknowledged.set(`${shard} ${seq}`, hash); // the last line may be torn
      }
      const journal = sqliteJournal({ directory: root });
      let found = 0;
      for (const shard of shards) {
        const { epoch } = await journal.tail(shard);
        const records = await readAll(journal, shard);
        deepEqual(
          seqs(records),
          records.map((_, i) => i + 1),
        );
        ok(records.every((record) => record.epoch <= epoch));
        for (const { seq, ...rest } of records) {
          const hash = acknowledged.get(`${shard} ${seq}`);
          if (hash === undefined) continue;
          equal(String(recordHash({ shard, seq, ...rest })), hash);
          found += 1;
        }
      }
      equal(found, acknowledged.size);
      const snapshot = await journal.loadSnapshot(0);
      if (snapshot) for await (const chunk of snapshot.chunks) equal(chunk.length, 100_000);
      await journal.close();
    }
    await rm(root, { recursive: true });
  });
