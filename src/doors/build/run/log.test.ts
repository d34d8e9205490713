import { equal } from "node:assert/strict";
import { test } from "node:test";
import { detail } from "#grpc/status.ts";
import { ActionResult } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode } from "#wire/message.ts";
import { runLog } from "./log.ts";
import { timestampOf } from "#doors/build/view.ts";

const spec = {
  action: "aa/3",
  instance: "",
  timeoutMs: 60_000,
  memoryBytes: 1_024,
  cpus: 0,
  network: false,
  requires: ["door=build", "os=linux"],
};
const task = { jobId: "j0-1", taskId: "t0-1", attempt: 2 };
const empty = decode(ActionResult, new Uint8Array());

test("the log of a failed run has what a person would ask for", () => {
  const result: ActionResult = {
    ...empty,
    exitCode: 7,
    executionMetadata: {
      worker: "mill-1",
      queuedTimestamp: timestampOf(0),
      workerStartTimestamp: timestampOf(1_500),
      executionStartTimestamp: timestampOf(2_000),
      executionCompletedTimestamp: timestampOf(2_250),
      auxiliaryMetadata: [detail(StringValue, { value: '{"cpuMs":3}' })],
    },
  };
  const status = { code: 8, message: "too little memory", details: [] };
  equal(
    runLog({ task, spec, status, message: "it ran out of memory", result }),
    [
      "action:     aa/3",
      "job:        j0-1, task t0-1, attempt 2",
      "worker:     mill-1",
      "ended:      exit code 7, status 8: too little memory",
      "because:    it ran out of memory",
      "limits:     60000 ms, 1024 bytes of memory, any processors, no network",
      "asked for:  door=build, os=linux",
      "queued:     1500 ms, from 1970-01-01T00:00:00.000Z",
      "command:    250 ms, from 1970-01-01T00:00:02.000Z",
      'used:       {"cpuMs":3}',
      "made:       0 files, 0 directories",
      "",
    ].join("\n"),
  );
});
