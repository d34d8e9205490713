/** What attacks on a node's port cost the node, and how they affect another caller. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock as clock } from "#door/system-clock.ts";
import { GrpcClient } from "#grpc/client.ts";
import { attacks as known } from "#h2/testing/attacks.ts";
import { connectH2 } from "#h2/client.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

export const attacks: Suite = {
  name: "attacks",
  about: "floods on a real node's port: its CPU and memory, and how long an innocent caller waits meanwhile",
  notMeasured: [
    "many attackers at once: one process attacks, and comes back as soon as it is sent away",
    "what the network before the node would bear; everything is on this machine, which all of it shares",
    "TLS: its handshakes cost more than any of these",
  ],
  async run(report, { smoke }) {
    const forMs = smoke ? 300 : 3_000;
    const node = await startNode();
    try {
      await warmUp(node, forMs);
      const rows = [await underAttack(report, node, undefined, forMs)];
      for (const name of Object.keys(known)) rows.push(await underAttack(report, node, name, forMs));
      report.table(
        `Each for ${forMs / 1_000} s, on one node; the innocent one calls every 2 ms over a connection of its own`,
        ["", "came back", "frames", "node CPU %", "MB more", "calls", "failed", "p50 ms", "p99 ms"],
        rows.map(({ name, connections, turns, cpuShare, grownMb, calls, failed, p50, p99 }) => [
          name,
          connections,
          turns,
          Math.round(cpuShare * 100),
          grownMb,
          calls,
          failed,
          p50,
          p99,
        ]),
      );
      const worst = rows.slice(1).reduce((a, b) => (b.p99 > a.p99 ? b : a), rows[1] ?? rows[0]!);
      report.figure("calm_p99_ms", rows[0]?.p99 ?? Number.NaN);
      report.figure("worst_p99_ms", worst.p99);
      report.figure(
        "failed_calls",
        rows.reduce((sum, { failed }) => sum + failed, 0),
      );
      const grownMb = Math.max(...rows.map((row) => row.grownMb));
      report.figure("memory_grown_mb", grownMb);
      report.target({
        what: "calls of the innocent that failed",
        atMost: 0,
        got: rows.reduce((n, r) => n + r.failed, 0),
      });
      report.target({ what: "memory that an attack leaves behind, MB", atMost: 30, got: grownMb });
    } finally {
      await node.stop();
    }
  },
};

type Node = { readonly pid: number; readonly port: number; stop(): Promise<void> };
type Row = {
  readonly name: string;
  readonly connections: number;
  readonly turns: number;
  readonly cpuShare: number;
  readonly grownMb: number;
  readonly calls: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
};

async function startNode(): Promise<Node> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-attacks-"));
  const file = join(folder, "config.json");
  const config = { journal: { kind: "memory" }, blobs: { kind: "memory" }, edge: { listen: ["127.0.0.1:0"] } };
  writeFileSync(file, JSON.stringify(config));
  const main = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
  // With the flags of `millrace up` the young generation may grow by 128 MB, and hide what an attack holds.
  const up = [main, "up", "--json", "--config", file, "--data", join(folder, "data")];
  const child = spawn(process.execPath, up, { stdio: ["ignore", "pipe", "inherit"] });
  const { edge } = JSON.parse(await firstLine(child)) as { readonly edge: readonly string[] };
  return {
    pid: child.pid ?? 0,
    port: Number(edge[0]?.split(":").at(-1)),
    async stop() {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (part: Buffer) => {
      text += part.toString();
      const end = text.indexOf("\n");
      if (end !== -1) resolve(text.slice(0, end));
    });
    child.once("exit", (code) => reject(new Error(`the node ended with ${code} before it was up`)));
  });
}

/** Until the node's young generation has its full size: later growth is then due to the attack. */
async function warmUp({ port }: Node, forMs: number): Promise<void> {
  const connect = () => connectH2({ host: "127.0.0.1", port, clock });
  const client = new GrpcClient({ clock, authority: `127.0.0.1:${port}`, connect });
  const untilMono = performance.now() + forMs;
  const callers = Array.from({ length: 64 }, async () => {
    while (performance.now() < untilMono) await client.unary(Health.methods.check, { service: "" });
  });
  await Promise.all(callers);
  client.close();
}

async function underAttack(report: Report, node: Node, name: string | undefined, forMs: number): Promise<Row> {
  const { port } = node;
  const connect = () => connectH2({ host: "127.0.0.1", port, clock });
  const innocent = new GrpcClient({ clock, authority: `127.0.0.1:${port}`, connect });
  await innocent.unary(Health.methods.check, { service: "" });
  const before = usageOf(node.pid);
  const startedMono = performance.now();
  const attacked = name === undefined ? undefined : attacker(port, name, forMs);
  const tookMs: number[] = [];
  let failed = 0;
  while (performance.now() - startedMono < forMs) {
    const askedMono = performance.now();
    try {
      await innocent.unary(Health.methods.check, { service: "" }, { deadlineMs: 5_000 });
      tookMs.push(performance.now() - askedMono);
    } catch (error) {
      failed += 1;
      report.say(`${name}: a call failed: ${String(error)}`);
    }
    await clock.sleep(2);
  }
  const told = (await attacked) ?? { turns: 0, connections: 0 };
  const seconds = (performance.now() - startedMono) / 1_000;
  const after = usageOf(node.pid);
  innocent.close();
  return {
    name: name ?? "calm",
    ...told,
    cpuShare: (after.cpuS - before.cpuS) / seconds,
    grownMb: Math.max(0, (after.rssBytes - before.rssBytes) / 1e6),
    calls: tookMs.length,
    failed,
    p50: percentile(tookMs, 0.5),
    p99: percentile(tookMs, 0.99),
  };
}

function attacker(port: number, name: string, forMs: number): Promise<{ turns: number; connections: number }> {
  const script = join(import.meta.dirname, "attacker.ts");
  const child = spawn(process.execPath, [script, `${port}`, name, `${forMs}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return firstLine(child).then((line) => JSON.parse(line) as { turns: number; connections: number });
}

/** Linux only, like the figures of the other benchmarks' servers. */
function usageOf(pid: number): { readonly cpuS: number; readonly rssBytes: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return { cpuS: ((fields[11] ?? 0) + (fields[12] ?? 0)) / 100, rssBytes: (fields[21] ?? 0) * 4_096 };
}
