/**
 * The memory of an idle connection to a node, plain and with TLS: a node as a process of its own, connections that made
 * one call each and then wait, and what its resident memory grew by. `node bin/node.js bench/edge/idle-connections.ts`
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testAuthority } from "#edge/testing/certificate.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { freePort } from "#testing/free-port.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");
const token = `bench-${"0123456789".repeat(4)}`;
const warmUp = 100;
const count = Number(process.argv[2] ?? 1_000);

const residentBytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1_024;

async function measured(isTls: boolean): Promise<number> {
  const root = mkdtempSync(join(tmpdir(), "millrace-idle-"));
  const authority = testAuthority();
  const own = authority.issue({ dns: ["localhost"], ip: ["127.0.0.1"] });
  for (const [name, text] of Object.entries({ cert: own.cert, key: own.key })) writeFileSync(join(root, name), text);
  const port = await freePort();
  const identity = { tokens: [{ name: "bench", tenant: "*", roles: ["operator"], sha256: tokenSha256(token) }] };
  const tls = isTls ? { tls: { certificate: join(root, "cert"), key: join(root, "key") } } : {};
  const edge = { listen: [`127.0.0.1:${port}`], identity, ...tls };
  writeFileSync(join(root, "config.yaml"), JSON.stringify({ worker: { enabled: false }, edge }));
  const child = spawn(process.execPath, [main, "up", "--data", root], { stdio: "ignore" });
  const clients: GrpcClient[] = [];
  try {
    const secured = isTls ? { tls: { ca: authority.cert, servername: "localhost" } } : {};
    const open = async (): Promise<void> => {
      const client = new GrpcClient({
        clock,
        authority: "localhost",
        connect: () => connectH2({ host: "127.0.0.1", port, clock, ...secured }),
        metadata: [["authorization", `Bearer ${token}`]],
      });
      await client.unary(Health.methods.check, { service: "" }, { deadlineMs: 30_000 });
      clients.push(client);
    };
    for (let tries = 0; clients.length === 0 && tries < 600; tries += 1)
      await open().catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
    while (clients.length < warmUp) await open();
    const before = residentBytes(child.pid ?? 0);
    while (clients.length < warmUp + count) await open();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    return Math.round((residentBytes(child.pid ?? 0) - before) / count);
  } finally {
    for (const client of clients) client.close();
    child.kill("SIGTERM");
    await new Promise((resolve) => child.once("exit", resolve));
    rmSync(root, { recursive: true, force: true });
  }
}

console.log(JSON.stringify({ connections: count, plainBytes: await measured(false), tlsBytes: await measured(true) }));
