/** golden/plans.yaml has actions and what is submitted for them; UPDATE_GOLDEN=1 writes the answers anew. */
import { deepEqual, equal, notEqual, throws } from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseDocument, type Document, type YAMLMap, type YAMLSeq } from "yaml";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import type { Action, Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { executionSettingsDefault, type ExecutionSettings } from "./execute/execution-settings.ts";
import {
  cachedName,
  operationName,
  parseCachedName,
  parseOperationName,
  parseStreamName,
  streamNameOf,
} from "./execute/operation-names.ts";
import { kernelPriority, planAction, planJoin, planOrder, readSpec, type Asked } from "./plan.ts";
import { noCommand } from "./testing/build.ts";

const asked: Asked = {
  instance: "",
  fn: "sha256",
  action: `${"a".repeat(64)}/142`,
  principal: "mill",
  metadata: undefined,
  nowMs: 1_700_000_000_000,
  unique: "only-one",
};
const noAction: Action = { doNotCache: false, salt: new Uint8Array() };
const settings: ExecutionSettings = { ...executionSettingsDefault, properties: ["gpu"], ignoredProperties: ["silo"] };
const wishes = { tenant: "mill", priority: 0, subscriber: "s" };
const order = (more: Partial<Asked> = {}, action: Partial<Action> = {}, command: Partial<Command> = {}) =>
  planOrder(
    planAction(
      { ...asked, ...more },
      { ...noAction, ...action },
      { ...noCommand, arguments: ["true"], ...command },
      settings,
    ),
    wishes,
  );

type Case = {
  readonly name: string;
  readonly asked?: Partial<Asked>;
  readonly action?: Partial<Action>;
  readonly command?: Partial<Command>;
};

/** What a reader wants to see of an order; the rest is the same for all. */
function summary({ asked: more, action, command }: Case): object {
  try {
    const { stages, spec, name, shardKey, mergeKey = "", leaveGraceMs, deadlineMs } = order(more, action, command);
    const template = stages[0]?.tasks?.template;
    const { timeoutMs, network, memoryBytes, cpus, tool, doNotCache } = readSpec(spec) ?? {};
    return {
      name,
      requires: template?.requires,
      timeout: timeoutMs,
      attempt: template?.attemptMs,
      deadline: deadlineMs,
      grace: leaveGraceMs,
      wishes: { network, memoryBytes, cpus, ...(tool && { tool }), doNotCache },
      tie: shardKey === `mill/${mergeKey}` ? "by merge key" : shardKey,
    };
  } catch (error) {
    if (!isGrpcError(error)) throw error;
    return { refused: error.code === grpcCode.invalidArgument ? error.message : error.code };
  }
}

describe("an action to be executed", () => {
  const path = join(import.meta.dirname, "golden/plans.yaml");
  const document: Document = parseDocument(readFileSync(path, "utf8"));
  const cases = document.contents as YAMLSeq<YAMLMap>;
  for (const [i, item] of cases.items.entries()) {
    const one = item.toJSON() as Case & { readonly submitted?: object };
    const got = JSON.parse(JSON.stringify(summary(one))) as object;
    if (process.env["UPDATE_GOLDEN"]) (cases.items[i] as YAMLMap).set("submitted", document.createNode(got));
    else test(one.name, () => deepEqual(got, one.submitted));
  }
  if (process.env["UPDATE_GOLDEN"]) writeFileSync(path, document.toString({ lineWidth: 118 }));

  test("63: merges with the same action of the same instance only", () => {
    equal(order({ unique: "1" }).mergeKey, order({ unique: "2", nowMs: 5 }).mergeKey);
    notEqual(order().mergeKey, order({ instance: "other" }).mergeKey);
    notEqual(order().mergeKey, order({ action: `${"b".repeat(64)}/142` }).mergeKey);
    notEqual(order().mergeKey, order({ action: `blake3:${"a".repeat(64)}/142`, fn: "blake3" }).mergeKey);
  });

  test("62: one that is not to be cached merges with nothing, and yet can be joined again", () => {
    const alone = (unique: string) => order({ unique }, { doNotCache: true });
    notEqual(alone("1").mergeKey, alone("2").mergeKey);
    const spec = readSpec(alone("1").spec);
    equal(spec && planJoin(spec, { ...wishes, subscriber: "another" }).mergeKey, alone("1").mergeKey);
  });

  test("64: the lower the sooner, and no further than there is room", () => {
    deepEqual([0, 5, -5, 1_000, -1_000].map(kernelPriority), [0, -5, 5, -100, 100]);
  });

  test("59: repeated properties are demands, all of them, in one spelling whatever their order", () => {
    const platform = (names: readonly string[]) => ({
      platform: { properties: names.map((value) => ({ name: "gpu", value })) },
    });
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 5 }), (names) => {
        const requires = order({}, platform(names)).stages[0]?.tasks?.template.requires ?? [];
        deepEqual(requires, [
          "door=build",
          ...[...new Set(names)].toSorted().map((each) => `gpu=${each}`),
          "pool=default",
        ]);
      }),
    );
  });
});

describe("an operation's name", () => {
  test("says where it is kept, with any instance", () => {
    for (const instance of ["", "main", "a/b"])
      deepEqual(parseOperationName(operationName(instance, "j1f-2s")), { instance, jobId: "j1f-2s" });
  });

  test("leads to what it prints", () => {
    for (const instance of ["", "main", "a/myoperations/b"])
      for (const jobId of ["j1f-2s", "j1-operations"]) {
        const name = streamNameOf(operationName(instance, jobId), 7, "stdout");
        deepEqual(parseStreamName(name), { instance, jobId, token: 7, name: "stdout" });
      }
  });

  test("50: of what came from the cache says which action it is of", () => {
    const hash = "ab".repeat(32);
    for (const instance of ["", "main", "a/b"])
      for (const action of [`${hash}/142`, `blake3:${hash}/0`, `sha1:${"ab".repeat(20)}/7`])
        deepEqual(parseCachedName(cachedName(instance, action)), { instance, action });
    for (const name of ["operations/j1-1", "", "operations/cached-md5-ab-1", `operations/cached-sha256-${hash}`])
      equal(parseCachedName(name), undefined, name);
  });

  test("50: of anything else is not found, whatever it is", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constantFrom("operations/j01-1", "j1-1", "operations/t1-1")), (name) => {
        throws(
          () => parseOperationName(name),
          (error) => isGrpcError(error),
        );
      }),
    );
  });
});
