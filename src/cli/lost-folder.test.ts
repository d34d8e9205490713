// A data folder that is removed under a running node: the node says so, refuses writes, and ends.
import { doesNotMatch, equal, match, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const main = join(import.meta.dirname, "main.ts");

test(
  "rm -rf of the data folder of a running node ends it, with why, and nothing is acknowledged",
  { timeout: 60_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-lost-"));
    const data = join(folder, "data");
    const env = { ...process.env, MILLRACE_DATA: data, XDG_CACHE_HOME: join(tmpdir(), "millrace-test-cache") };
    const args = [main, "up", "--set", "edge.listen=127.0.0.1:0"];
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    try {
      let text = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
      await until("it is up", () => text.includes("Ctrl-C stops it") || child.exitCode !== null, { limitMs: 60_000 });
      const edge = /edge {6}(127\.0\.0\.1:\d+) \(gRPC/.exec(text)?.[1];
      ok(edge !== undefined, text);
      const put = async (name: string): Promise<number> =>
        await fetch(`http://${edge}/gradle/${name}`, { method: "PUT", body: name }).then(
          ({ status }) => status,
          () => 0, // it has ended
        );
      const before = await put("before");
      ok(before >= 200 && before < 300, String(before));
      await rm(data, { recursive: true });
      const after = [await put("after"), await put("after-that")];
      ok(
        after.every((status) => status === 0 || status === 503),
        String(after),
      );
      const ready = await fetch(`http://${edge}/readyz`).then(
        ({ status }) => status,
        () => 0,
      );
      ok(ready === 503 || ready === 0, String(ready));
      equal(await ended, 1);
      match(text, /stopping: keep the data folder: unavailable .*removed or replaced while the node was running/);
      doesNotMatch(text, /at file:|at async/, "no traces");
      ok(!existsSync(data), "nothing is made anew");
    } finally {
      child.kill("SIGKILL");
      await ended;
      clearAway(folder);
    }
  },
);
