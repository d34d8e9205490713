import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { describedFiles, fileDescriptorSet, findFile, findSymbol, withImports } from "./descriptors.ts";
import { FileDescriptorSet } from "./generated/google/protobuf/descriptor.ts";
import { decode } from "./message.ts";

describe("descriptors", () => {
  test("come after those that they import", () => {
    const seen = new Set<string>();
    for (const { path, imports } of describedFiles()) {
      for (const imported of imports) ok(seen.has(imported), `${path} comes before ${imported}`);
      seen.add(path);
    }
  });

  test("are found by any name that the files declare", () => {
    const work = "millrace/work/v1/";
    for (const [symbol, path] of [
      ["millrace.work.v1.Work", `${work}work.proto`],
      ["millrace.work.v1.Work.Reserve", `${work}work.proto`],
      ["millrace.work.v1.CommitRequest", `${work}commands.proto`],
      ["millrace.work.v1.CommitRequest.result", `${work}commands.proto`],
      ["millrace.work.v1.Why.Queued.position", `${work}view.proto`],
      ["millrace.work.v1.JOB_PHASE_RUNNING", `${work}model.proto`],
      ["google.rpc.ErrorInfo.MetadataEntry", "google/rpc/error_details.proto"],
      ["grpc.health.v1.HealthCheckResponse.SERVING", "grpc/health/v1/health.proto"],
    ] as const)
      equal(findSymbol(symbol)?.path, path, symbol);
    equal(findSymbol("millrace.work.v1.Nothing"), undefined);
    equal(findFile("nothing.proto"), undefined);
  });

  test("include what they import", () => {
    const file = findFile("google/rpc/status.proto");
    ok(file);
    deepEqual(
      withImports(file).map(({ path }) => path),
      ["google/protobuf/any.proto", "google/rpc/status.proto"],
    );
  });

  test("are there as one set, with the services of all files", () => {
    const { file } = decode(FileDescriptorSet, fileDescriptorSet());
    equal(file.length, describedFiles().length);
    deepEqual(
      describedFiles()
        .flatMap(({ services }) => services)
        .toSorted(),
      [
        "build.bazel.remote.asset.v1.Fetch",
        "build.bazel.remote.asset.v1.Push",
        "build.bazel.remote.execution.v2.ActionCache",
        "build.bazel.remote.execution.v2.Capabilities",
        "build.bazel.remote.execution.v2.ContentAddressableStorage",
        "build.bazel.remote.execution.v2.Execution",
        "google.bytestream.ByteStream",
        "google.longrunning.Operations",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "millrace.build.v1.Builds",
        "millrace.work.v1.Admin",
        "millrace.work.v1.Events",
        "millrace.work.v1.Peer",
        "millrace.work.v1.Streams",
        "millrace.work.v1.Tasks",
        "millrace.work.v1.Work",
      ],
    );
  });
});
