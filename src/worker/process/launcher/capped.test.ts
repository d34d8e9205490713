import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Capped } from "./capped.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-capped-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function emptyFile(name: string): string {
  const path = join(folder, name);
  writeFileSync(path, "");
  return path;
}

describe("a file that a process prints to", () => {
  test("within its limit is left as it is", () => {
    const path = emptyFile("small");
    using capped = new Capped({ path, bytesMax: 100 });
    appendFileSync(path, "hello\n");
    capped.look();
    equal(capped.finish().leftOutBytes, 0);
    equal(readFileSync(path, "utf8"), "hello\n");
  });

  test("within its limit is not even opened", { skip: process.platform !== "linux" && "needs /proc" }, () => {
    const path = emptyFile("unopened");
    const open = (): number => readdirSync("/proc/self/fd").length;
    const before = open();
    using capped = new Capped({ path, bytesMax: 3 });
    appendFileSync(path, "abc");
    capped.look();
    deepEqual([capped.finish(), open()], [{ bytes: 3, leftOutBytes: 0 }, before]);
    appendFileSync(path, "d");
    capped.look();
    equal(open(), before + 1);
  });

  test("beyond its limit keeps its beginning and end, and says how much is missing", () => {
    const path = emptyFile("large");
    using capped = new Capped({ path, bytesMax: 100 });
    appendFileSync(path, `first ${"x".repeat(200)}`);
    capped.look();
    appendFileSync(path, `${"y".repeat(300)} last`);
    const { bytes, leftOutBytes } = capped.finish();
    const text = readFileSync(path, "utf8");
    equal(bytes, text.length);
    match(text, /^first x{69}\n\.\.\. 411 bytes left out \.\.\.\ny{20} last$/);
    equal(leftOutBytes, 411);
  });

  test("counts what is printed while it is truncated", { timeout: 60_000 }, async () => {
    const path = emptyFile("noisy");
    const fd = openSync(path, "a");
    const printed = 400_000_000;
    const child = spawn("sh", ["-c", `yes xxxxxxx | head -c ${printed}`], { stdio: ["ignore", fd, "ignore"] });
    closeSync(fd);
    const ended = once(child, "exit");
    using capped = new Capped({ path, bytesMax: 256 * 1024 });
    while (child.exitCode === null) {
      for (let i = 0; i < 50; i += 1) capped.look();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await ended;
    const { bytes, leftOutBytes } = capped.finish();
    ok(bytes + leftOutBytes > printed * 0.9, `${bytes} bytes kept and ${leftOutBytes} counted of ${printed}`);
    ok(bytes + leftOutBytes < printed * 1.01);
  });
});
