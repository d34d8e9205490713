import { deepEqual, equal, ok } from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { endianness } from "node:os";
import { test } from "node:test";
import { localSockets, socketsIn, type ConnectionEnds } from "./local-sockets.ts";
import { descendsFrom, socketHolders } from "./socket-holders.ts";

const skip = process.platform !== "linux" && "needs linux: /proc";

async function connected(host: string, to: string, look: (ends: ConnectionEnds) => Promise<void>): Promise<void> {
  const server = createServer();
  server.listen(0, host);
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, to);
  try {
    const [accepted] = (await once(server, "connection")) as [Socket];
    const { localAddress = "", localPort = 0, remoteAddress = "", remotePort = 0 } = accepted;
    await look({ localAddress, localPort, remoteAddress, remotePort });
    accepted.destroy();
  } finally {
    client.destroy();
    server.close();
  }
}

for (const [host, to] of [
  ["127.0.0.1", "127.0.0.1"],
  ["::1", "::1"],
  ["::", "127.0.0.1"],
] as const)
  test(
    `the other end of a connection from ${to} to ${host} is found, with the process that holds it`,
    { skip },
    async () => {
      await connected(host, to, async (ends) => {
        const other = (await localSockets()).otherEndOf(ends);
        equal(other?.uid, process.getuid?.());
        const holders = await socketHolders(new Set([other?.inode ?? 0]));
        deepEqual(holders.get(other?.inode ?? 0), [process.pid]);
        const elsewhere = { ...ends, remotePort: ends.remotePort === 1 ? 2 : 1 };
        equal((await localSockets()).otherEndOf(elsewhere), undefined);
      });
    },
  );

test("a kernel table is parsed, including IPv6 sockets that speak IPv4", { skip: endianness() !== "LE" }, () => {
  const table = `
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2314 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:C001 0100007F:2314 01 00000000:00000000 00:00000000 00000000  1001        0 12 1 0 20 4 30 10 -1
   2: 0000000000000000FFFF00000100007F:C002 0000000000000000FFFF00000100007F:2314 01 0:0 00:0 0 1002 0 13 1 0 20
   3: 0100007F:C003 0100007F:2314 06 00000000:00000000 03:00000179 00000000     0        0 0 3 0
   4: 000080FE00000000000000000100000A:C004 000080FE00000000000000000200000A:2314 01 0:0 00:0 0 1004 0 14 1 0 20
`;
  const sockets = socketsIn(table);
  const near = { localAddress: "127.0.0.1", localPort: 8980, remoteAddress: "127.0.0.1" };
  deepEqual(sockets.otherEndOf({ ...near, remotePort: 0xc001 }), { uid: 1001, inode: 12 });
  deepEqual(sockets.otherEndOf({ ...near, remotePort: 0xc002 }), { uid: 1002, inode: 13 });
  deepEqual(sockets.otherEndOf({ ...near, remoteAddress: "::ffff:127.0.0.1", remotePort: 0xc001 }), {
    uid: 1001,
    inode: 12,
  });
  deepEqual(sockets.otherEndOf({ ...near, remotePort: 0xc003 }), { uid: 0, inode: 0 }, "no process holds it");
  const far = { localAddress: "fe80::a00:2%eth0", localPort: 8980, remoteAddress: "fe80::a00:1%eth0" };
  deepEqual(sockets.otherEndOf({ ...far, remotePort: 0xc004 }), { uid: 1004, inode: 14 });
  equal(sockets.otherEndOf({ ...near, remotePort: 0xc009 }), undefined);
});

test("a process descends from its parents, and not from its own children", { skip }, () => {
  ok(descendsFrom(process.pid, process.pid));
  ok(descendsFrom(process.pid, process.ppid));
  equal(descendsFrom(process.ppid, process.pid), false);
  equal(descendsFrom(2 ** 22 + 1, process.pid), undefined, "one that does not exist");
});
