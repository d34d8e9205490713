/** What an agent makes of a node that answers too little, too much or something else. */
import { deepEqual, equal, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { isFault, type FaultCode } from "#base/fault.ts";
import { agentLink, type AgentLink } from "./link.ts";

const machine = { machine: "m1", region: "eu", labels: [] };
const answering = (body: Uint8Array | string, status = 200): AgentLink =>
  agentLink(() => Promise.resolve(new Response(Buffer.from(body), { status })), machine);
const is =
  (code: FaultCode) =>
  (error: unknown): boolean =>
    isFault(error, code);

describe("a manifest from a node", () => {
  const text = JSON.stringify({ purpose: "manifest", body: "{}", key: "", signature: "" });
  const digest = `${createHash("sha256").update(text).digest("hex")}/${text.length}`;
  const cases = [
    ["that ends early is asked for again", text.slice(0, -1), "unavailable"],
    ["without any bytes is asked for again", "", "unavailable"],
    ["that goes on for too long is refused", `${text} `, "corrupt"],
    ["with other bytes is refused", text.replace("{}", "[]"), "corrupt"],
  ] as const;
  test("with its digest is read", async () => equal((await answering(text).manifest(digest)).body, "{}"));
  for (const [about, body, code] of cases)
    test(about, async () => await rejects(answering(body).manifest(digest), is(code)));
  test("that is not there is said to be missing", async () => {
    const problem = JSON.stringify({ type: "about:blank", title: "Not found", status: 404 });
    await rejects(answering(problem, 404).manifest(digest), is("not-found"));
  });
});

describe("units from a node", () => {
  const frame = (unit: number, bytes: string): Buffer => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(unit, 0);
    head.writeUInt32BE(bytes.length, 4);
    return Buffer.concat([head, Buffer.from(bytes)]);
  };
  const unitsOf = async (body: Buffer): Promise<readonly (readonly [number, string])[]> => {
    const found: [number, string][] = [];
    const range = { stripe: 0, from: 0, to: 2, priority: 1 };
    const { signal } = new AbortController();
    for await (const { unit, bytes } of answering(body).units("c/1", range, signal)) found.push([unit, String(bytes)]);
    return found;
  };
  const both = Buffer.concat([frame(0, "one"), frame(16, "two")]);
  test("that end in the middle of one are those before it", async () => {
    deepEqual(await unitsOf(both), [
      [0, "one"],
      [16, "two"],
    ]);
    deepEqual(await unitsOf(both.subarray(0, -1)), [[0, "one"]]);
    deepEqual(await unitsOf(both.subarray(0, 7)), []);
  });
  test("that are said to be huge are refused before they are kept", async () => {
    const huge = Buffer.alloc(8, 255);
    await rejects(unitsOf(huge), is("corrupt"));
  });
});
