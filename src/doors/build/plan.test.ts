/** golden/plans.yaml has actions and the orders submitted for them; UPDATE_GOLDEN=1 rewrites the answers. */
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
import { kernelPriority, planAction, planJoin, planOrder, readSpec, traceIn, type ActionOrder } from "./plan.ts";
import { noCommand } from "./testing/build.ts";

const asked: ActionOrder = {
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
const order = (more: Partial<ActionOrder> = {}, action: Partial<Action> = {}, command: Partial<Command> = {}) =>
  planOrder(
    planAction(
      { ...asked, ...more },
      { ...noAction, ...action },
      { ...noCommand, arguments: ["true"], ...command },
      settings,
    ),
    wishes,
  );

test("only an action that is not cached, and that has a network, may ask for a token of its claim", () => {
  const planned = (wanted: Readonly<Record<string, string>>, doNotCache = true) => {
    const properties = Object.entries(wanted).map(([name, value]) => ({ name, value }));
    return readSpec(order({}, { doNotCache, platform: { properties } }).stages[0]?.tasks?.tasks?.[0]?.spec ?? "");
  };
  const both = { network: "on", taskCredential: "on" };
  equal(planned(both)?.credential, true);
  equal(planned({ network: "on", taskCredential: "off" })?.credential, undefined);
  equal(planned({ ...both, persistentWorkerKey: "javac" })?.tool, undefined, "a tool stays, a token does not");
  throws(() => planned(both, false), /only an action with do_not_cache/);
  throws(() => planned({ taskCredential: "on" }), /needs network: on/);
  throws(() => planned({ ...both, taskCredential: "yes" }), /is on or off/);
});

describe("an action's trace", () => {
  const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  test("is the submission's, and no part of the spec", () => {
    const spec = planAction(asked, noAction, { ...noCommand, arguments: ["true"] }, settings);
    const made = planOrder(spec, { ...wishes, trace });
    equal(made.trace, trace);
    deepEqual({ ...made, trace: undefined }, { ...planOrder(spec, wishes), trace: undefined });
  });

  test("is found in specs that were recorded when it was a part of them", () => {
    const { spec } = order();
    equal(traceIn(spec), undefined);
    equal(traceIn(JSON.stringify({ ...(JSON.parse(spec) as object), trace })), trace);
    equal(traceIn(`"trace": no spec`), undefined);
  });
});

type Case = {
  readonly name: string;
  readonly asked?: Partial<ActionOrder>;
  readonly action?: Partial<Action>;
  readonly command?: Partial<Command>;
};

/** The interesting parts of an order; the rest is the same for all. */
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

  test("REAPI-63: merges only with the same action of the same instance", () => {
    equal(order({ unique: "1" }).mergeKey, order({ unique: "2", nowMs: 5 }).mergeKey);
    notEqual(order().mergeKey, order({ instance: "other" }).mergeKey);
    notEqual(order().mergeKey, order({ action: `${"b".repeat(64)}/142` }).mergeKey);
    notEqual(order().mergeKey, order({ action: `blake3:${"a".repeat(64)}/142`, fn: "blake3" }).mergeKey);
  });

  test("REAPI-62: an action that is not to be cached is not merged, but can be joined again", () => {
    const alone = (unique: string) => order({ unique }, { doNotCache: true });
    notEqual(alone("1").mergeKey, alone("2").mergeKey);
    const spec = readSpec(alone("1").spec);
    equal(spec && planJoin(spec, { ...wishes, subscriber: "another" }).mergeKey, alone("1").mergeKey);
  });

  test("REAPI-64: lower is sooner, clamped to the range", () => {
    deepEqual([0, 5, -5, 1_000, -1_000].map(kernelPriority), [0, -5, 5, -100, 100]);
  });

  test("REAPI-59: repeated properties are all required, in a canonical order", () => {
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
  test("contains where it is kept, with any instance", () => {
    for (const instance of ["", "main", "a/b"])
      deepEqual(parseOperationName(operationName(instance, "j1f-2s")), { instance, jobId: "j1f-2s" });
  });

  test("leads to its output streams", () => {
    for (const instance of ["", "main", "a/myoperations/b"])
      for (const jobId of ["j1f-2s", "j1-operations"]) {
        const name = streamNameOf(operationName(instance, jobId), 7, "stdout");
        deepEqual(parseStreamName(name), { instance, jobId, token: 7, name: "stdout" });
      }
  });

  test("REAPI-50: from the cache contains its action", () => {
    const hash = "ab".repeat(32);
    for (const instance of ["", "main", "a/b"])
      for (const action of [`${hash}/142`, `blake3:${hash}/0`, `sha1:${"ab".repeat(20)}/7`])
        deepEqual(parseCachedName(cachedName(instance, action)), { instance, action });
    for (const name of ["operations/j1-1", "", "operations/cached-md5-ab-1", `operations/cached-sha256-${hash}`])
      equal(parseCachedName(name), undefined, name);
  });

  test("REAPI-50: anything else is not found", () => {
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
