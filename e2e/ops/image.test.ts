/**
 * The image, built and started. Building needs npm and Debian, so the test runs only on request: $MILLRACE_IMAGE_BASE
 * names the base, $MILLRACE_CONTAINERS the program and its flags, if that is not docker.
 */
import { equal, match, ok } from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const base = process.env["MILLRACE_IMAGE_BASE"] ?? "";
const [program = "", ...flags] = (process.env["MILLRACE_CONTAINERS"] ?? "docker").split(" ");
const skip = skipped();

function skipped(): false | string {
  if (process.platform !== "linux") return "needs docker on Linux, where a container can have the machine's network";
  if (base === "") return "needs docker, and $MILLRACE_IMAGE_BASE: see docs/how-to/docker.md";
  const { status, stderr, error } = spawnSync(program, [...flags, "info"], { encoding: "utf8", timeout: 20_000 });
  return status === 0 ? false : `needs docker: ${program} does not answer (${error?.message ?? stderr.trim()})`;
}

/** Not every machine may raise them, and some programs try. */
const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=2000:2000"];

test("the image builds, runs as an unprivileged user, answers its probes and drains at SIGTERM", { skip }, async () => {
  const ask = async (...args: readonly string[]): Promise<string> =>
    (await run(program, [...flags, ...args], { maxBuffer: 64 * 1024 * 1024 })).stdout.trim();
  const name = `millrace-test-${process.pid}`;
  await ask("build", "--network=host", ...limits, "--build-arg", `BASE=${base}`, "-t", name, root);
  const port = await freePort();
  const settings = {
    MILLRACE_EDGE_LISTEN: `127.0.0.1:${port}`,
    MILLRACE_EDGE_IDENTITY_CLEARTEXT: "true",
    MILLRACE_EDGE_IDENTITY_TOKENS: `[{name: op, tenant: "*", roles: [operator], sha256: "${"0".repeat(64)}"}]`,
  };
  const env = Object.entries(settings).flatMap(([key, value]) => ["-e", `${key}=${value}`]);
  try {
    await ask("run", "-d", "--name", name, "--network=host", ...limits, ...env, name);
    const answers = async (path: string): Promise<boolean> =>
      await fetch(`http://127.0.0.1:${port}${path}`).then(
        ({ ok: isOk }) => isOk,
        () => false,
      );
    await until("it is ready", () => answers("/readyz"), { limitMs: 120_000, everyMs: 200 });
    ok(await answers("/livez"));
    equal(await ask("exec", name, "id", "-u"), "10001");
    match(await ask("exec", name, "millrace", "nodes"), / up /);
    match(await ask("exec", name, "millrace", "job", "submit", "--follow", "--", "echo", "from inside"), /from inside/);
    await ask("stop", "-t", "60", name);
    equal(await ask("inspect", "-f", "{{.State.ExitCode}}", name), "0");
  } finally {
    await ask("rm", "-f", name).catch(() => {});
    await ask("rmi", "-f", name).catch(() => {});
  }
});
