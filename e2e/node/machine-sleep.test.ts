/** An owner on a machine that sleeps past its lease: a real node, a real PostgreSQL, a stopped monotonic clock. */
import { equal, notEqual, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import { endChild } from "#testing/end-child.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { openSuspend } from "#testing/suspend.ts";
import { until } from "#testing/until.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { systemClock } from "#door/system-clock.ts";

const postgres = await sharedPostgres();
const suspend = openSuspend();
after(async () => {
  await postgres.stop();
  suspend.close();
});

const program = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const patience = { limitMs: 60_000, everyMs: 20 };
const stats = { kind: "query", shard: 0, query: { kind: "stats" } } as const;

test(
  "an owner whose machine slept past its lease answers no read that was sent meanwhile",
  { skip: postgres.skip || suspend.skip, timeout: 120_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "millrace-sleep-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const url = await postgres.server().freshDatabase();
    const settings = (name: string, address: string): object => ({
      cluster: { shards: 1, ownerLease: "2s" },
      node: { name, data: join(folder, name), listen: [address], stopWithin: "1s" },
      edge: { listen: [] },
      journal: { kind: "postgres", url },
      blobs: { kind: "directory", directory: join(folder, "blobs") },
      worker: { enabled: false },
    });
    mkdirSync(join(folder, "blobs"));
    const address = `unix:${join(folder, "sleeper.sock")}`;
    const config = join(folder, "sleeper.json");
    writeFileSync(config, JSON.stringify(settings("sleeper", address)));
    const env = { ...process.env, ...suspend.env, XDG_CACHE_HOME: join(folder, "cache") };
    const sleeper = spawn(process.execPath, [program, "up", "--config", config], { env, stdio: "ignore" });
    stack.defer(() => endChild(sleeper, "SIGKILL"));

    const journal = postgresJournal({ url });
    stack.defer(() => journal.close());
    const owned = async (owner: string): Promise<number | undefined> => {
      const [row] = await journal.ownerships().catch(() => []);
      return row?.owner === owner && row.remainingMs > 0 ? row.epoch : undefined;
    };
    await until("the node owns the shard", async () => (await owned("sleeper")) !== undefined, patience);
    const transport = createTcpTransport({ clock: systemClock });
    stack.defer(() => transport.close());
    const ask = () => transport.request(address, stats, AbortSignal.timeout(20_000));
    await until("the node answers", async () => (await ask()).kind === "answer", patience);
    const other = await startNode(
      Config.parse(settings("other", `unix:${join(folder, "other.sock")}`)),
      dataFolder(join(folder, "other")),
      { log: () => {} },
    );
    stack.defer(() => other.stop());

    const before = await owned("sleeper");
    const wake = suspend.begin([sleeper.pid ?? 0]);
    await until("the other owns the shard", async () => (await owned("other")) !== undefined, patience);
    const epoch = (await owned("other")) ?? 0;
    ok(epoch > (before ?? 0));
    const asked = ask();
    wake();
    const answered = await asked;
    notEqual(answered.kind, "answer", `the sleeper answered under epoch ${before}, of ${epoch} (K8)`);
    await until("the sleeper has heard who owns it", async () => (await ask()).kind === "not-owner", patience);
    equal(await owned("other"), epoch, "and the shard stays where it is");
  },
);
