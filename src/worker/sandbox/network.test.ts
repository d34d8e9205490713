import { equal, match, notEqual, ok } from "node:assert/strict";
import { readlinkSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { canMakeNetworks } from "#worker/process/sockets/network.ts";
import { rigClock, rigHome, text } from "#worker/process/testing/rig.ts";
import { commandOf } from "./testing/rig.ts";
import { Sandbox } from "./sandbox.ts";
import { clearAway } from "#testing/clear-away.ts";

/** One lane, so that all commands run in the same one. */
class Rig implements AsyncDisposable {
  readonly #sandbox: Sandbox;
  readonly #home: string;

  private constructor(sandbox: Sandbox, home: string) {
    this.#sandbox = sandbox;
    this.#home = home;
  }

  static async open(): Promise<Rig> {
    const home = rigHome();
    const options = { home, socket: join(home, "l.sock"), lanes: 1, clock: rigClock, log: () => {} };
    return new Rig(await Sandbox.open({ ...options, isolation: { want: "bubblewrap" } }), home);
  }

  async bash(script: string, network = false): Promise<string> {
    await using attempt = await this.#sandbox.attempt();
    await attempt.run(commandOf(["/bin/bash", "-c", script], { network }));
    return `${text(attempt.folder.stdout)}${text(attempt.folder.stderr)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.close({ quit: true });
    clearAway(this.#home);
  }
}

const own = "readlink /proc/self/ns/net";
const skip = !canMakeNetworks() && "needs root, bubblewrap and nsenter: a lane's own network";

describe("a lane's own network", { skip }, () => {
  test("commands without network share it in turn; those that ask for network use the machine's", async () => {
    await using rig = await Rig.open();
    const machine = readlinkSync("/proc/self/ns/net");
    const first = (await rig.bash(own)).trim();
    match(first, /^net:/);
    notEqual(first, machine);
    equal((await rig.bash(own)).trim(), first);
    equal((await rig.bash(own, true)).trim(), machine);
    equal((await rig.bash(own)).trim(), first, "and back");
  });

  test("contains only the loopback device, and nothing of others", async () => {
    await using rig = await Rig.open();
    const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
    try {
      await new Promise((resolve) => server.once("listening", resolve));
      const { port } = server.address() as AddressInfo;
      match(await rig.bash(`exec 3<>/dev/tcp/127.0.0.1/${port}`), /refused/, "lo is up, and no process listens there");
      equal(await rig.bash(`exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached`, true), "reached\n");
      match(await rig.bash("exec 3<>/dev/tcp/192.0.2.1/80"), /unreachable/);
      equal((await rig.bash("cut -d: -f1 -s /proc/net/dev | tr -d ' '")).trim(), "lo");
    } finally {
      server.close();
    }
  });

  test("cannot be changed from inside", async () => {
    await using rig = await Rig.open();
    const before = await rig.bash("cat /proc/net/route /proc/net/if_inet6 /proc/net/dev | grep -c .");
    await rig.bash(
      "ip link set lo down; ip addr add 10.0.0.1/8 dev lo; unshare -n true; echo 0 > /proc/sys/net/ipv4/ip_forward",
    );
    equal(await rig.bash("cat /proc/net/route /proc/net/if_inet6 /proc/net/dev | grep -c ."), before);
    ok(/refused/.test(await rig.bash("exec 3<>/dev/tcp/127.0.0.1/1")), "lo is still up");
  });
});
