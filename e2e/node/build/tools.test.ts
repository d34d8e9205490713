/** A whole node whose actions use a persistent tool, called as a client does. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import { noCommand } from "#doors/build/testing/build.ts";
import {
  Action,
  Command,
  Directory,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode, encode } from "#wire/message.ts";
import { python, testingTool, withoutTool } from "#worker/tool/testing/python.ts";
import { Bench, Lab, secrets, tokensFor, type Played } from "./execution-lab.ts";

const toolText = readFileSync(testingTool);

describe("persistent tools, on a node", { skip: withoutTool, timeout: 60_000 }, () => {
  let lab: Lab;
  const benches = new Map<string, Bench>();
  before(async () => {
    const edge = { listen: ["127.0.0.1:0"], identity: { tokens: tokensFor(["member", "viewer"]) } };
    lab = await Lab.open({ edge, worker: { slots: 2, toolsMax: 2 } });
    for (const who of ["mill", "bakery"] as const) benches.set(who, new Bench(lab.client(secrets[who])));
  });
  after(() => lab[Symbol.asyncDispose]());

  /** As Bazel sends it with --experimental_remote_mark_tool_inputs. */
  async function actionOf(
    bench: Bench,
    words: readonly string[],
    more: Readonly<Record<string, string>>,
  ): Promise<Digest> {
    const file = async (name: string, bytes: Uint8Array | string, isTool = false) => ({
      name,
      digest: await bench.put(bytes),
      isExecutable: false,
      ...(isTool && { nodeProperties: { properties: [{ name: "bazel_tool_input", value: "" }] } }),
    });
    const files = [await file("args-0.params", words.join("\n")), await file("tool.py", toolText, true)];
    const root = await bench.put(encode(Directory, { files, directories: [], symlinks: [] }));
    const command: Command = {
      ...noCommand,
      arguments: [python, "tool.py", "@args-0.params"],
      environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }],
      outputPaths: ["n"],
    };
    const properties = Object.entries({ persistentWorkerKey: "the tool's hash", ...more }).map(([name, value]) => ({
      name,
      value,
    }));
    const action: Action = {
      commandDigest: await bench.put(encode(Command, command)),
      inputRootDigest: root,
      doNotCache: false,
      salt: Buffer.from(randomUUID()),
      platform: { properties },
    };
    return await bench.put(encode(Action, action));
  }

  async function execute(who: string, words: readonly string[], more = {}): Promise<Played> {
    const bench = benches.get(who);
    ok(bench);
    return await bench.execute(await actionOf(bench, words, more));
  }

  const toolOf = ({ response }: Played): unknown => {
    const [usage] = response.result?.executionMetadata?.auxiliaryMetadata ?? [];
    return usage && (JSON.parse(decode(StringValue, usage.value).value) as { tool?: unknown }).tool;
  };

  test("equal tools serve one action after the other, separately for each tenant; /metrics counts them", async () => {
    const notes = [
      toolOf(await execute("mill", ["count n"])),
      toolOf(await execute("mill", ["count n", "say again"])),
      toolOf(await execute("bakery", ["count n"])),
    ];
    deepEqual(notes, [{ asked: 1 }, { asked: 2 }, { asked: 1 }]);
    const answer = await fetch(`http://127.0.0.1:${lab.node?.edgePorts[0]}/metrics`, {
      headers: { authorization: `Bearer ${secrets.mill}` },
    });
    const text = await answer.text();
    match(text, /^millrace_tools\{state="idle"\} 2$/m);
    match(text, /^millrace_tool_requests_total\{tool="kept"\} 1$/m);
    match(text, /^millrace_tool_requests_total\{tool="started"\} 2$/m);
  });

  test("a tool that dies: its action is run without it, and says so", async () => {
    const played = await execute("mill", ["die", "count n"]);
    equal(played.response.result?.exitCode, 0);
    match(JSON.stringify(toolOf(played)), /"without":"it ended/);
  });

  test("a tool with an unknown protocol is refused", async () => {
    await execute("mill", ["count n"], { persistentWorkerProtocol: "smoke" }).then(
      () => ok(false, "it was taken"),
      (error: unknown) => ok(isGrpcError(error, grpcCode.invalidArgument), String(error)),
    );
  });
});
