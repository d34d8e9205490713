/** Item 4 for executed actions: everything in the answer is named by the digest function of the request. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { noCommand } from "#doors/build/testing/build.ts";
import {
  Action,
  Command,
  Directory,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { encode } from "#wire/message.ts";
import { onWorkers, ranWell } from "#e2e/conformance/actions.ts";
import { needs, type Case } from "#e2e/conformance/case.ts";
import {
  batchUpdateBlobs,
  digestOf,
  fresh,
  functionNumbers,
  readAll,
  readName,
  result as resultOf,
  sameBytes,
  type Lab,
} from "#e2e/conformance/lab.ts";

const fn = "blake3";
const digestFunction = functionNumbers[fn];

async function put(lab: Lab, data: Uint8Array): Promise<Digest> {
  const digest = digestOf(data, fn);
  const requests = [{ digest, data, compressor: 0 }];
  const { responses } = await lab.client.unary(batchUpdateBlobs, {
    instanceName: lab.instance,
    requests,
    digestFunction,
  });
  equal(responses[0]?.status?.code ?? 0, 0, "an input is taken");
  return digest;
}

export const functionCases: readonly Case[] = [
  onWorkers(4, "an action of BLAKE3 has its inputs, its outputs and its result by BLAKE3", async (lab) => {
    const functions = lab.capabilities.executionCapabilities?.digestFunctions ?? [];
    needs(functions.includes(digestFunction), "a server that executes by BLAKE3");
    const input = fresh();
    const file = { name: "in", digest: await put(lab, input), isExecutable: false };
    const inputRootDigest = await put(lab, encode(Directory, { files: [file], directories: [], symlinks: [] }));
    const command: Command = {
      ...noCommand,
      arguments: ["/bin/sh", "-c", "cat in > o; echo ground"],
      environmentVariables: [{ name: "PATH", value: "/usr/bin:/bin" }],
      outputPaths: ["o"],
    };
    const commandDigest = await put(lab, encode(Command, command));
    const platform = lab.platform.length > 0 ? { platform: { properties: lab.platform } } : {};
    const salt = fresh(16);
    const bytes = encode(Action, { commandDigest, inputRootDigest, doNotCache: false, salt, ...platform });
    const action = await put(lab, bytes);
    const { response, result } = await ranWell(lab, action, { digestFunction });
    equal(response.cachedResult, false);
    const made = result.outputFiles[0]?.digest;
    ok(made, "the output");
    deepEqual(made, digestOf(input, fn));
    sameBytes(await readAll(lab, readName(lab, made, { fn })), input, "the output");
    deepEqual(result.stdoutDigest, digestOf(Buffer.from("ground\n"), fn));
    deepEqual((await resultOf(lab, action, { digestFunction })).outputFiles[0]?.digest, made, "and so in the cache");
    equal((await ranWell(lab, action, { digestFunction })).response.cachedResult, true);
  }),
];
