import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Publication } from "#shard/outbox/outbox.ts";
import { publisherOf } from "./publishers.ts";

const publication: Publication = {
  shard: 3,
  tenant: "t",
  door: "build",
  job: 1,
  task: 2,
  generation: 1,
  spec: "",
  publish: "p",
  result: { payload: "", digests: [], publish: "p" },
  committedAtMs: 0,
};
const { signal } = new AbortController();

describe("results are published by their door", () => {
  test("which says how it went", async () => {
    const asked: string[] = [];
    const build = async ({ publish }: Publication): Promise<"later"> => {
      asked.push(publish);
      return "later";
    };
    const publish = publisherOf(
      () => ({ build }),
      (line) => asked.push(line),
    );
    equal(await publish(publication, signal), "later");
    deepEqual(asked, ["p"]);
  });

  test("a result whose door publishes nothing is done, with a log line", async () => {
    const lines: string[] = [];
    const publish = publisherOf(
      () => ({}),
      (line) => lines.push(line),
    );
    equal(await publish(publication, signal), "done");
    equal(await publish({ ...publication, door: "toString" }, signal), "done");
    deepEqual(lines, [
      't3-2: the door "build" publishes nothing, although the result asks for it',
      't3-2: the door "toString" publishes nothing, although the result asks for it',
    ]);
  });
});
