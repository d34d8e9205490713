/** Results that name very many blobs, and actions that need more memory than expected: through a whole node. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { parseOperationName } from "#doors/build/execute/operation-names.ts";
import { ActionCache } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode } from "#wire/message.ts";
import { Bench, Lab } from "./execution-lab.ts";

const skip = process.platform !== "linux" && "needs linux: the sandbox";
const salted = (line: string): string => `${line} # ${randomUUID()}`;

test(
  "K3: a result with 12,500 outputs is committed, every one of them pinned, and found in the cache",
  { skip },
  async () => {
    await using lab = await Lab.open({ worker: { slots: 2 } });
    const bench = new Bench(lab.client());
    const [files, inTree] = [1_500, 11_000];
    const outputPaths = ["d", ...Array.from({ length: files }, (_, i) => `f/${i + 1}`)];
    const line = `mkdir d; for i in $(seq ${files}); do echo f$i > f/$i; done; for i in $(seq ${inTree}); do echo d$i > d/$i; done`;
    const action = await bench.sh(salted(line), { outputPaths });
    const { response, name } = await bench.execute(action);
    equal(response.status?.code ?? 0, 0, response.status?.message ?? "");
    equal(response.result?.outputFiles.length, files);
    const { view } = await lab.node!.client.job(parseOperationName(name).jobId);
    ok(
      (view.tasks[0]?.result?.digests.length ?? 0) >= files + inTree + 2,
      `${view.tasks[0]?.result?.digests.length} pinned`,
    );
    const asked = { instanceName: "", actionDigest: action, inlineStdout: false, inlineStderr: false };
    const { getActionResult } = ActionCache.methods;
    const again = await bench.grpc.unary(getActionResult, { ...asked, inlineOutputFiles: [], digestFunction: 0 });
    deepEqual([again.outputFiles.length, again.outputDirectories.length], [files, 1]);
  },
);

test(
  "an action that runs out of memory is run once more with more, and its result says how much it used",
  { skip },
  async (t) => {
    await using lab = await Lab.open({ worker: { slots: 2 } });
    if (!lab.log.some((line) => /groups cgroup/.test(line))) return t.skip("needs cgroups: nothing limits memory here");
    const bench = new Bench(lab.client());
    const memory = (value: string) => ({ platform: { properties: [{ name: "memory", value }] } });
    const hog = (bytes: number): string => salted(`head -c ${bytes} /dev/zero | tail -c ${bytes} | wc -c`);
    const attempts = async (name: string): Promise<number | undefined> =>
      (await lab.node!.client.job(parseOperationName(name).jobId)).view.tasks[0]?.attempts;
    const saved = await bench.execute(await bench.sh(hog(60_000_000), {}, {}, memory("50MiB")));
    equal(saved.response.result?.exitCode, 0);
    equal(Buffer.from(saved.response.result?.stdoutRaw ?? "").toString(), "60000000\n");
    equal(await attempts(saved.name), 2);
    const [told] = saved.response.result?.executionMetadata?.auxiliaryMetadata ?? [];
    const { memoryPeakBytes } = JSON.parse(decode(StringValue, told?.value ?? new Uint8Array()).value) as {
      memoryPeakBytes: number;
    };
    ok(memoryPeakBytes > 50 * 1024 ** 2 && memoryPeakBytes <= 100 * 1024 ** 2, `${memoryPeakBytes} bytes`);
    const lost = await bench.execute(await bench.sh(hog(300_000_000), {}, {}, memory("50MiB")));
    equal(await attempts(lost.name), 2, "once, not for ever");
    ok(/memory/.test(lost.response.message + (lost.response.status?.message ?? "")));
  },
);
