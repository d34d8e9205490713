import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { Fields } from "#mesh/wire/fields.ts";
import { Keyring } from "#mesh/wire/keyring.ts";
import { framed } from "#mesh/wire/messages.ts";
import { MsgpackReader, textOf, type Packed } from "#mesh/wire/msgpack-reader.ts";
import { pack, type Packable } from "#mesh/wire/msgpack-writer.ts";
import { readFields, serfCode } from "./serf-messages.ts";
import { answersTo } from "./serf-queries.ts";

const key = (fill: number): Uint8Array => new Uint8Array(16).fill(fill);
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

const query = (fields: Readonly<Record<string, Packable>>): Fields =>
  new Fields(
    new MsgpackReader(pack({ LTime: 7, ID: 99, Addr: Uint8Array.of(10, 0, 0, 1), Port: 7_946, ...fields })).map(),
  );

const about = (name: string, bytes?: Uint8Array): Fields =>
  query({ Name: `_serf_${name}`, Payload: framed(serfCode.keyRequest, { Key: bytes ?? null }) });

/** The content of the only answer: the outcome of a command about keys. */
function outcome(asked: Fields, keyring: Keyring): { result: Packed; message: string; keys: readonly string[] } {
  const [answer] = answersTo(asked, "me", keyring);
  const response = new Fields(readFields(must(answer, "an answer").message));
  const fields = new Fields(readFields(response.bytes("Payload", 4_096)));
  const keys = fields.value("Keys");
  return {
    result: fields.value("Result"),
    message: textOf(fields.bytes("Message", 4_096)),
    keys: Array.isArray(keys) ? (keys as readonly Uint8Array[]).map(textOf) : [],
  };
}

describe("queries of serf's commands", () => {
  test("an acknowledgement goes to the node that asked, with the query's number and time", () => {
    const [answer, ...rest] = answersTo(query({ Flags: 1, Name: "any" }), "me", new Keyring());
    deepEqual(rest, []);
    deepEqual(answer?.to, { host: "10.0.0.1", port: 7_946 });
    equal(answer?.message[0], serfCode.queryResponse);
    const fields = new Fields(readFields(must(answer, "an answer").message));
    deepEqual([fields.uint32("ID"), fields.lamport("LTime"), fields.uint32("Flags")], [99, 7, 1]);
    equal(fields.text("From"), "me");
    deepEqual(answersTo(query({ Flags: 0, Name: "any" }), "me", new Keyring()), []);
    deepEqual(answersTo(query({ Flags: 1, Name: "any", Addr: null }), "me", new Keyring()), []);
  });

  test("a filter by name counts; one by tags is someone else's expression and is not run", () => {
    const filtered = (...filters: readonly Uint8Array[]): number =>
      answersTo(query({ Flags: 1, Filters: filters }), "me", new Keyring()).length;
    const byName = (...names: readonly string[]): Uint8Array => Uint8Array.from([0, ...pack(names)]);
    const byTag = Uint8Array.from([1, ...pack({ Tag: "role", Expr: ".*" })]);
    equal(filtered(), 1);
    equal(filtered(byName("you", "me")), 1);
    equal(filtered(byName("you")), 0);
    equal(filtered(byName("me"), byTag), 0);
    equal(filtered(Uint8Array.of(9)), 0);
  });

  test("keys are installed, used, listed and removed, and each refusal says why", () => {
    const keyring = new Keyring([key(1)]);
    equal(outcome(about("install-key", key(2)), keyring).result, true);
    deepEqual(outcome(about("list-keys"), keyring).keys, [key(1), key(2)].map(base64));
    match(outcome(about("remove-key", key(1)), keyring).message, /it is in use/);
    equal(outcome(about("use-key", key(2)), keyring).result, true);
    equal(outcome(about("remove-key", key(1)), keyring).result, true);
    deepEqual(keyring.keys.map(base64), [base64(key(2))]);
    const unknown = outcome(about("use-key", key(5)), keyring);
    equal(unknown.result, false);
    match(unknown.message, /not installed/);
    match(outcome(about("install-key", new Uint8Array(3)), keyring).message, /16, 24 or 32 bytes/);
  });

  test("a mesh without keys accepts none over the network", () => {
    const keyring = new Keyring();
    const { result, message } = outcome(about("install-key", key(1)), keyring);
    equal(result, false);
    match(message, /no keys/);
    equal(keyring.isEmpty, true);
  });
});
