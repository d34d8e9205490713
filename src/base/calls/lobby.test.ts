import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { Lobby, networkOf } from "./lobby.ts";

const guest = (name: string): { readonly name: string } => ({ name });
const limits = { max: 4, perNetworkMax: 2 };

test("a full lobby drops the connection that waited longest", () => {
  const lobby = new Lobby<{ readonly name: string }>();
  const first = guest("first");
  lobby.enter(first, "10.0.0.1", limits);
  for (const n of [2, 3, 4]) equal(lobby.enter(guest(`${n}`), `10.0.0.${n}`, limits), undefined);
  deepEqual(lobby.enter(guest("5"), "10.0.0.5", limits), { guest: first, reason: "full" });
  equal(lobby.size, 4);
  equal(lobby.has(first), false);
});

test("a network with too many connections loses one of its own, and no other network does", () => {
  const lobby = new Lobby<{ readonly name: string }>();
  const mine = guest("mine");
  const oldest = guest("oldest");
  lobby.enter(mine, "10.0.0.1", limits);
  lobby.enter(oldest, "2001:db8::1", limits);
  lobby.enter(guest("b"), "2001:db8:0:0:ffff::2", limits);
  deepEqual(lobby.enter(guest("c"), "2001:db8::3", limits), { guest: oldest, reason: "network-full" });
  equal(lobby.has(mine), true);
  equal(lobby.size, 3);
});

test("a connection that was touched counts as the newest, and one that left no longer counts", () => {
  const lobby = new Lobby<{ readonly name: string }>();
  const [a, b] = [guest("a"), guest("b")];
  lobby.enter(a, "10.0.0.1", limits);
  lobby.enter(b, "10.0.0.1", limits);
  lobby.touch(a);
  equal(lobby.enter(guest("c"), "10.0.0.1", limits)?.guest, b);
  equal(lobby.leave(a), true);
  equal(lobby.leave(a), false);
  lobby.touch(a);
  equal(lobby.size, 1);
  equal(lobby.enter(guest("d"), "10.0.0.1", limits), undefined);
});

test("IPv6 addresses count by their /64 network, mapped IPv4 addresses as IPv4", () => {
  equal(networkOf("127.0.0.1"), "127.0.0.1");
  equal(networkOf("::ffff:10.1.2.3"), "10.1.2.3");
  equal(networkOf("::1"), "0:0:0:0::/64");
  equal(networkOf("fe80::1%eth0"), "fe80:0:0:0::/64");
  equal(networkOf("2001:DB8:0a:0:1:2:3:4"), "2001:db8:a:0::/64");
  equal(networkOf("2001:db8:a::9"), networkOf("2001:db8:a:0:ffff:ffff:ffff:ffff"));
  equal(networkOf(""), "");
});
