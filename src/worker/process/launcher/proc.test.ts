import { equal, ok } from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { isAlive, isOver } from "./proc.ts";

const isLinux = process.platform === "linux";
const hasPython = isLinux && spawnSync("python3", ["-c", "import ctypes"]).status === 0;

/** Its first thread ends; another one sleeps. */
const headless = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("up", flush=True)
ctypes.CDLL(None).pthread_exit(None)
`;

const stateOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.[0] ?? "";

async function withChild(argv: readonly string[], look: (pid: number) => Promise<void>): Promise<void> {
  const [program = "", ...args] = argv;
  const child: ChildProcess = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  try {
    await once(child.stdout ?? child, "data");
    await look(child.pid ?? 0);
  } finally {
    const ended = once(child, "exit");
    if (child.kill("SIGKILL")) await ended;
  }
}

describe("a process", { skip: !isLinux && "needs Linux" }, () => {
  test("that runs is alive, and not over", async () => {
    await withChild(["/bin/sh", "-c", "echo up; exec sleep 60"], async (pid) => {
      ok(isAlive(pid) && !isOver(pid));
    });
  });

  test("that is a zombie is over", async () => {
    // The shell's child ends at once, and the shell does not wait for it.
    await withChild(["/bin/sh", "-c", "sh -c 'echo $$' & exec sleep 60"], async (parent) => {
      const [child = 0] = readFileSync(`/proc/${parent}/task/${parent}/children`, "latin1").split(" ").map(Number);
      await until("it is dead", () => stateOf(child) === "Z");
      ok(!isAlive(child) && isOver(child));
    });
  });

  test("that is gone is over", () => {
    const { pid } = spawnSync("/bin/true");
    equal(isAlive(pid), false);
    equal(isOver(pid), true);
  });

  test(
    "whose first thread is dead is alive while another one runs",
    { skip: !hasPython && "needs python: no python3 with ctypes" },
    async () => {
      await withChild(["python3", "-c", headless], async (pid) => {
        await until("its first thread is dead", () => stateOf(pid) === "Z");
        ok(isAlive(pid) && !isOver(pid));
      });
    },
  );
});
