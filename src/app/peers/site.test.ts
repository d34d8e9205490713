import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { PeersView } from "#app/compose/mesh.ts";
import { Config } from "#app/config/config.ts";
import { workSources } from "#app/work/work-sources.ts";
import { tagsOf } from "./mesh-tags.ts";
import { peerEdges } from "./peer-edges.ts";
import { siteOf } from "./site.ts";

const peer = (name: string, region: string | undefined, more: object = {}) => ({
  name,
  self: false,
  state: "alive",
  kind: "millrace",
  tags: { cluster: "c", edge: `${name}:1`, ...(region !== undefined && { region }) },
  ...more,
});
const view = (...peers: readonly object[]): PeersView => ({ peers }) as unknown as PeersView;

describe("where nodes are", () => {
  test("a node says so, in its facts and in the mesh", () => {
    const config = Config.parse({ node: { region: "eu-west", rack: "r12" } });
    deepEqual(siteOf(config), { region: "eu-west", rack: "r12" });
    deepEqual(siteOf(Config.parse({})), {});
    const facts = { cluster: "c", version: "1", state: "up", edge: undefined, work: undefined, running: 1, slots: 2 };
    const { region, rack } = tagsOf({ ...facts, sandbox: undefined, ...siteOf(config) });
    deepEqual([region, rack], ["eu-west", "r12"]);
  });

  const cases: readonly (readonly [string, string | undefined, PeersView, string])[] = [
    ["nodes of its region alone, where there are any", "eu", view(peer("a", "eu"), peer("b", "us")), "a"],
    ["all, where there are none", "ap", view(peer("a", "eu"), peer("b", "us")), "a b"],
    ["all, if it does not know where it is", undefined, view(peer("a", "eu"), peer("b", undefined)), "a b"],
    ["none that is dead", "eu", view(peer("a", "eu", { state: "dead" }), peer("b", "us")), "b"],
    ["not itself", "eu", view(peer("a", "eu", { self: true }), peer("b", "us")), "b"],
  ];
  for (const [name, region, peers, expected] of cases)
    test(`it asks for bytes: ${name}`, () =>
      equal(
        peerEdges(peers, "c", false, region)
          .map((url) => url.slice("http://".length, -":1/".length))
          .join(" "),
        expected,
      ));

  test("work of another region weighs less, and its own region's is heard of first", async () => {
    const nodes = [
      { address: "us", alive: true, facts: { region: "us" } },
      { address: "eu", alive: true, facts: { region: "eu" } },
      { address: "somewhere", alive: true, facts: {} },
    ];
    const node = { address: "self", ready: {}, keeper: { nodes } };
    const tcp = { call: async () => [[3, 8]] };
    const sources = workSources(node as never, tcp as never, "eu")();
    deepEqual([...sources.keys()], ["self", "eu", "somewhere", "us"]);
    const heard = async (name: string) =>
      await sources.get(name)?.ready({ executor: "x", offers: [], free: 1 }, 0, new AbortController().signal);
    deepEqual([await heard("eu"), await heard("somewhere"), await heard("us")], [[[3, 8]], [[3, 8]], [[3, 2]]]);
  });
});
