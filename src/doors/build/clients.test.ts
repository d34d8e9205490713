import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { habitsOf } from "./clients.ts";

test("what committed_size means to which client", () => {
  const of = (tool: string | undefined, agent?: string) => habitsOf(tool, agent).compressedCommit;
  deepEqual(
    {
      bazel: of("bazel"),
      "bazel by its agent": of(undefined, "bazel/8.0 grpc-java-netty/1.66"),
      buck2: of("buck2"),
      siso: of("siso"),
      reclient: of("reclient"),
      "a tool's name goes before its library's": of("bazel", "reproxy/1"),
      "nobody in particular": of(undefined, "grpc-go/1.60"),
      nobody: of(undefined),
    },
    {
      bazel: "compressed",
      "bazel by its agent": "compressed",
      buck2: "compressed",
      siso: "plain",
      reclient: "plain",
      "a tool's name goes before its library's": "compressed",
      "nobody in particular": "compressed",
      nobody: "compressed",
    },
  );
});
