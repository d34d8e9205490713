import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { encodeTags } from "#mesh/tags.ts";
import { withoutSecrets } from "./config.ts";
import { MeshConfig, withJoin } from "./mesh-config.ts";
import { factsFor } from "#app/peers/mesh-facts.ts";
import { peerOf, tagsOf } from "#app/peers/mesh-tags.ts";
import { check, problem } from "#app/testing/config.ts";

const key = Buffer.from(new Uint8Array(32).fill(1)).toString("base64");

describe("the mesh's configuration", () => {
  test("left out, there is no mesh; empty, it is a mesh on this machine", () => {
    equal(check("").mesh, undefined);
    deepEqual(check("mesh: {}").mesh, {
      listen: "127.0.0.1:7946",
      join: [],
      label: "",
      keys: [],
      compress: true,
      profile: "lan",
    });
  });

  test("beyond this machine it needs keys", () => {
    match(problem('mesh: { listen: "0.0.0.0:7946" }'), /mesh\.listen.*without keys any host on the network could join/);
    match(problem('mesh: { listen: "10.1.2.3:7946" }'), /without keys/);
    equal(problem(`mesh: { listen: "0.0.0.0:7946", keys: ["${key}"] }`), "none");
    equal(problem(`mesh: { listen: "0.0.0.0:7946", keysFile: /etc/keys.json }`), "none");
    equal(problem('mesh: { listen: "[::1]:7946" }'), "none");
  });

  test("explains a wrong key, profile or address, and never shows a key", () => {
    match(problem("mesh: { keys: [abc] }"), /mesh\.keys.*16, 24 or 32 bytes/);
    match(problem("mesh: { profile: mars }"), /mesh\.profile/);
    match(problem("mesh: { listen: here }"), /write host:port/);
    const shown = JSON.stringify(withoutSecrets(check(`mesh: { keys: ["${key}"] }`)));
    ok(!shown.includes(key) && shown.includes("***"), shown);
  });

  test("--join creates a mesh if none is configured, and adds to an existing one", () => {
    equal(withJoin(undefined, undefined), undefined);
    deepEqual(withJoin(undefined, "a:1,b:2")?.join, ["a:1", "b:2"]);
    const mesh = MeshConfig.parse({ join: ["c:3"], profile: "wan" });
    deepEqual(withJoin(mesh, "a:1")?.join, ["a:1", "c:3"]);
    equal(withJoin(mesh, "a:1")?.profile, "wan");
    equal(withJoin(mesh, undefined), mesh);
  });
});

describe("a node's tags", () => {
  const nowhere = { edge: undefined, work: undefined };
  const facts = { cluster: "c", version: "1", state: "up", ...nowhere, running: 3, slots: 8, sandbox: "bubblewrap" };

  test("are small for all values", () => {
    const long = "x".repeat(1_000);
    const all = { ...facts, cluster: long, version: long, state: long, edge: long, work: long, sandbox: long };
    ok(encodeTags(tagsOf(all)).length <= 512);
    const told = { role: "millrace", cluster: "c", version: "1", state: "up", load: "3/8" };
    deepEqual(tagsOf(facts), { ...told, sandbox: "bubblewrap" });
    deepEqual(tagsOf({ ...facts, sandbox: undefined }), told);
  });

  test("name the edge as others reach it, and not one on loopback", () => {
    const node = { status: () => ({ state: "up" }), address: "tcp:10.0.0.1:7433" } as unknown as Parameters<
      typeof factsFor
    >[1]["node"];
    const edgeAt = (edgeAddress: string | undefined, host: string): string | undefined =>
      factsFor(check(""), { node, worker: () => undefined, sandbox: undefined, edgeAddress })(host).edge;
    equal(edgeAt("0.0.0.0:8980", "10.0.0.1"), "10.0.0.1:8980");
    equal(edgeAt("[::]:8980", "fe80::1"), "[fe80::1]:8980");
    equal(edgeAt("10.0.0.9:8980", "10.0.0.1"), "10.0.0.9:8980");
    equal(edgeAt("127.0.0.1:8980", "127.0.0.1"), "127.0.0.1:8980");
    equal(edgeAt("127.0.0.1:8980", "10.0.0.1"), undefined);
    equal(edgeAt(undefined, "10.0.0.1"), undefined);
  });

  test("are parsed from others' tags, of which only the form is trusted", () => {
    const member = {
      name: "a",
      address: { host: "::1", port: 7 },
      state: "alive" as const,
      incarnation: 1,
      versions: undefined,
      sinceMs: 5,
      isSelf: false,
    };
    const peer = (tags: Record<string, string>) => peerOf({ ...member, tags });
    deepEqual(peer({ role: "millrace", load: "3/8" }).load, { running: 3, slots: 8 });
    equal(peer({ role: "millrace", load: "3/8/9" }).load, undefined);
    equal(peer({ role: "lab", load: "3/8" }).load, undefined);
    equal(peer({ role: "lab" }).kind, "other");
    equal(peer({}).address, "[::1]:7");
  });
});
