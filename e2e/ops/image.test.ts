/** The image, built and started, where there is something to build it with. */
import { equal, match, ok } from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { freePort } from "#test/free-port.ts";
import { until } from "#test/until.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** The first of them that is installed and answers. */
const builder = ["docker", "podman"].find((name) => spawnSync(name, ["info"], { timeout: 20_000 }).status === 0);
const skip = builder === undefined && "needs docker: neither docker nor podman is there, or its daemon does not answer";

test("the image builds, runs as nobody in particular, answers its probes and drains at SIGTERM", { skip }, async () => {
  const tool = builder ?? "";
  const name = `millrace-test-${process.pid}`;
  await run(tool, ["build", "-t", name, root], { maxBuffer: 64 * 1024 * 1024 });
  const port = await freePort();
  const tokens = `[{name: op, tenant: "*", roles: [operator], sha256: ${"0".repeat(64)}}]`;
  const settings = {
    MILLRACE_EDGE_LISTEN: "0.0.0.0:8980",
    MILLRACE_EDGE_IDENTITY_CLEARTEXT: "true",
    MILLRACE_EDGE_IDENTITY_TOKENS: tokens,
  };
  const env = Object.entries(settings).flatMap(([key, value]) => ["-e", `${key}=${value}`]);
  await run(tool, ["run", "-d", "--name", name, "-p", `127.0.0.1:${port}:8980`, ...env, name]);
  try {
    const answers = async (path: string): Promise<boolean> =>
      await fetch(`http://127.0.0.1:${port}${path}`).then(
        ({ ok: isOk }) => isOk,
        () => false,
      );
    await until("it is ready", () => answers("/readyz"), { limitMs: 120_000, everyMs: 200 });
    ok(await answers("/livez"));
    equal((await run(tool, ["exec", name, "id", "-u"])).stdout.trim(), "10001");
    match((await run(tool, ["exec", name, "millrace", "nodes"])).stdout, / up /);
    await run(tool, ["stop", "-t", "60", name]);
    equal((await run(tool, ["inspect", "-f", "{{.State.ExitCode}}", name])).stdout.trim(), "0");
  } finally {
    await run(tool, ["rm", "-f", name]).catch(() => {});
    await run(tool, ["rmi", "-f", name]).catch(() => {});
  }
});
