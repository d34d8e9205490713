/** Which local callers are tasks, with real sockets and real processes. */
import { equal } from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Fault } from "#base/fault.ts";
import type { ConnectionEnds } from "#worker/process/sockets/local-sockets.ts";
import type { End } from "#worker/process/protocol.ts";
import { until } from "#testing/until.ts";
import { TaskCallers } from "./task-callers.ts";

const skip = process.platform !== "linux" && "needs linux: /proc";
const isRoot = process.getuid?.() === 0;
const laneUid = 1_835_600_007;

describe("callers on this machine", { skip, timeout: 90_000 }, () => {
  let server: Server;
  const children: ChildProcess[] = [];
  const accepted: Socket[] = [];
  before(async () => {
    server = createServer((socket) => accepted.push(socket.on("error", () => {})));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => {
    for (const child of children) child.kill("SIGKILL");
    for (const socket of accepted) socket.destroy();
    server.close();
  });

  /** A process that connects and waits. */
  async function caller(uid?: number): Promise<{ readonly ends: ConnectionEnds; readonly child: ChildProcess }> {
    const { port } = server.address() as AddressInfo;
    const before = accepted.length;
    const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; read -r _`;
    const child = spawn("/bin/bash", ["-c", script], {
      stdio: ["pipe", "ignore", "ignore"],
      cwd: "/",
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    children.push(child);
    await until("it has connected", () => accepted.length > before);
    const { localAddress = "", localPort = 0, remoteAddress = "", remotePort = 0 } = accepted[before] ?? {};
    return { ends: { localAddress, localPort, remoteAddress, remotePort }, child };
  }

  const never = new Promise<End>(() => {});
  const callersOf = (uids?: { first: number; count: number }, launcher = 0) => {
    const clock = new ManualClock(0);
    return { clock, callers: new TaskCallers({ clock, uids, launcherPid: () => launcher }) };
  };

  test("are not checked while no task shares the network, and are checked for a while after one did", async () => {
    const { callers, clock } = callersOf(undefined, process.pid);
    const { ends } = await caller();
    equal(callers.isTask(ends), "no");
    equal(callers.isTask(undefined), "no");
    const running = Promise.withResolvers<End>();
    callers.sharing(running.promise);
    equal(await callers.isTask(ends), "task");
    running.resolve({} as End);
    await running.promise;
    await clock.advance(599_000);
    equal(await callers.isTask(ends), "task", "it may have connected before it ended");
    await clock.advance(1_001);
    equal(callers.isTask(ends), "no");
  });

  test("are checked forever after a task that may have left processes", async () => {
    const { callers, clock } = callersOf(undefined, process.pid);
    callers.sharing(Promise.resolve({ note: "some of its processes may still be alive" } as End));
    await clock.advance(10 ** 9);
    equal(callers.matters, true);
    const lost = callersOf();
    const gone = Promise.reject(new Fault("unavailable", "run process", {}));
    lost.callers.sharing(gone);
    await gone.catch(() => {});
    await lost.clock.advance(10 ** 9);
    equal(lost.callers.matters, false, "a task that died with its launcher is gone");
  });

  test("are known by their parent process, if tasks have this user", async () => {
    const { ends, child } = await caller();
    const ofLauncher = callersOf(undefined, process.pid);
    ofLauncher.callers.sharing(never);
    equal(await ofLauncher.callers.isTask(ends), "task");
    const ofAnother = callersOf(undefined, child.pid);
    ofAnother.callers.sharing(never);
    const other = await caller();
    equal(await ofAnother.callers.isTask(other.ends), "no");
    equal(await ofAnother.callers.isTask(ends), "task", "the launcher itself");
  });

  test("are known by their user, if tasks have separate users", { skip: !isRoot && "needs root" }, async () => {
    const { callers } = callersOf({ first: laneUid - 7, count: 20 });
    callers.sharing(never);
    equal(await callers.isTask((await caller(laneUid)).ends), "task");
    equal(await callers.isTask((await caller()).ends), "no");
    equal(await callers.isTask((await caller(laneUid + 13)).ends), "no");
  });

  test("that cannot be seen any more may be tasks", async () => {
    for (const uids of [undefined, { first: laneUid, count: 1 }]) {
      const { callers } = callersOf(uids, 1);
      callers.sharing(never);
      const { ends, child } = await caller();
      child.kill("SIGKILL");
      await once(child, "exit");
      equal(await callers.isTask(ends), "unclear");
      equal(await callers.isTask(undefined), "unclear");
      equal(callers.isTask({ ...ends, remoteAddress: "203.0.113.7" }), "no", "not of this machine");
    }
  });

  test(
    "that hide their files may be tasks",
    { skip: isRoot && "needs a plain user: root sees everything" },
    async () => {
      const { callers } = callersOf(undefined, 1);
      callers.sharing(never);
      const { port } = server.address() as AddressInfo;
      const before = accepted.length;
      const hide = `import ctypes,socket,time; s=socket.create_connection(("127.0.0.1",${port})); ctypes.CDLL(None).prctl(4,0); time.sleep(60)`;
      children.push(spawn("python3", ["-c", hide], { stdio: "ignore" }));
      await until("it has connected", () => accepted.length > before);
      const { localAddress = "", localPort = 0, remoteAddress = "", remotePort = 0 } = accepted[before] ?? {};
      equal(await callers.isTask({ localAddress, localPort, remoteAddress, remotePort }), "unclear");
    },
  );
});
