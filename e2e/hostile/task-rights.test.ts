/**
 * An action that shares the host's network is neither the operator nor an anonymous caller of this machine: everything
 * that it tries against its own node is refused. In the sandbox and without; as root and, by running this file again,
 * as a plain user.
 */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { callOf } from "#shard/work/calls.ts";
import { clearAway } from "#testing/clear-away.ts";
import {
  ActionCache,
  ContentAddressableStorage,
  Execution,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { resultPrinting } from "#doors/build/testing/build.ts";
import { encode, type Method } from "#wire/message.ts";
import { lastingFolder } from "./user-folder.ts";
import { Bench, executing, Lab } from "#e2e/node/build/execution-lab.ts";
import { orderFromCommand } from "#app/job-order.ts";
import type { AttackPlan } from "./task-attack-program.ts";
import { bwrapMissing } from "#testing/bubblewrap.ts";

const isLinux = process.platform === "linux";
const isRoot = process.getuid?.() === 0;
const program = readFileSync(new URL("./task-attack-program.ts", import.meta.url), "utf8");
const victim = { hash: "b".repeat(64), sizeBytes: 10 };

const bytesOf = <Q>(method: Method<Q, unknown>, request: Q): string =>
  Buffer.from(encode(method.request, request)).toString("base64");

/** A job that runs as the node's own user, and would leave a file behind. */
function shellJob(proof: string): readonly [string, string, string] {
  const { shardKey: _, ...order } = orderFromCommand(["/bin/sh", "-c", `id > ${proof}`], { tenant: "default" });
  const request = { kind: "command", shard: 0, command: { ...order, kind: "submit" } } as const;
  const call = callOf(request);
  return ["Submit", call.method.path, bytesOf(call.method, call.writeRequest(request))];
}

const { updateActionResult } = ActionCache.methods;
const { findMissingBlobs, batchUpdateBlobs } = ContentAddressableStorage.methods;
const { execute } = Execution.methods;
const common = { instanceName: "", digestFunction: 0 } as const;
const buildCalls: AttackPlan["calls"] = [
  [
    "UpdateActionResult",
    updateActionResult.path,
    bytesOf(updateActionResult, { ...common, actionDigest: victim, actionResult: resultPrinting("poison") }),
  ],
  ["FindMissingBlobs", findMissingBlobs.path, bytesOf(findMissingBlobs, { ...common, blobDigests: [victim] })],
  ["BatchUpdateBlobs", batchUpdateBlobs.path, bytesOf(batchUpdateBlobs, { ...common, requests: [] })],
  ["Execute", execute.path, bytesOf(execute, executing(victim))],
];

const requests: AttackPlan["requests"] = [
  ["GET", "/metrics"],
  ["GET", "/peers"],
  ["GET", "/v1/node/drain"],
  ["DELETE", "/v1/node/drain"],
  ["POST", "/v1/session/link"],
  ["GET", "/v1/build-cache/stat"],
  ["GET", `/ac/${victim.hash}`],
  ["PUT", `/ac/${victim.hash}`],
  ["PUT", `/cas/${victim.hash}`],
];

/**
 * A Node that is visible in the sandbox: everything below a temporary folder is hidden, this process's own program too.
 */
function nodeIn(folder: string): string {
  if (!/^\/(var\/)?tmp\//.test(realpathSync(process.execPath))) return process.execPath;
  const copy = join(folder, "node");
  if (!existsSync(copy)) copyFileSync(process.execPath, copy);
  chmodSync(copy, 0o755);
  return copy;
}

const kinds = [
  { kind: "bubblewrap", skip: isLinux ? bwrapMissing() : "needs linux: namespaces" },
  { kind: "plain", skip: !isLinux && "needs linux: /proc" },
] as const;

for (const { kind, skip } of kinds)
  describe(
    `an action with the host's network (${kind}, ${isRoot ? "root" : "a plain user"})`,
    { skip, timeout: 60_000 },
    () => {
      let lab: Lab;
      let bench: Bench;
      const proofs = mkdtempSync(join(lastingFolder() ?? homedir(), "millrace-rights-"));
      const elsewhere = join(proofs, "elsewhere.sock");
      const usual = join(proofs, "usual");
      /** Otherwise it runs as the node's own user, whose files it can read, and the node says so. */
      const isApart = kind === "bubblewrap" || isRoot;

      before(async () => {
        // Temporary folders are hidden in every sandbox: put the node's folder where it could be seen.
        process.env["TMPDIR"] = proofs;
        chmodSync(proofs, 0o711);
        // Of another node of the same user, at the default path; only the sandbox protects it from an action.
        process.env["MILLRACE_DATA"] = usual;
        mkdirSync(usual);
        writeFileSync(join(usual, "operator.token"), "another node's", { mode: 0o644 });
        lab = await Lab.open({
          worker: { slots: 2, sandbox: kind, toolsMax: 0 },
          node: { stopWithin: "100ms", listen: ["unix", `unix:${elsewhere}`] },
        });
        bench = new Bench(lab.client());
      });
      after(async () => {
        await lab[Symbol.asyncDispose]();
        delete process.env["TMPDIR"];
        delete process.env["MILLRACE_DATA"];
        clearAway(proofs);
      });

      const inData = (name: string): string => join(lab.root, "data", name);

      async function attack(network: string): Promise<Record<string, string>> {
        const files = ["operator.token", "up.pid", "node-name"].map(inData);
        const plan: AttackPlan = {
          port: lab.node?.edgePorts[0] ?? 0,
          calls: [shellJob(join(proofs, "proof")), ...buildCalls],
          requests,
          files: [...(isApart ? files : []), ...(kind === "bubblewrap" ? [join(usual, "operator.token")] : [])],
          sockets: isApart ? [inData("node.sock"), elsewhere, join(lab.root, "actions", "sock")] : [],
          pids: isApart ? [process.pid] : [],
        };
        const action = await bench.action(
          {
            arguments: [nodeIn(proofs), "attack.ts", JSON.stringify(plan)],
            environmentVariables: [
              { name: "PATH", value: "/usr/bin:/bin" },
              { name: "SALT", value: randomUUID() },
            ],
          },
          { "attack.ts": program },
          { platform: { properties: [{ name: "network", value: network }] } },
        );
        const { response } = await bench.execute(
          action,
          { inlineStdout: true },
          { signal: AbortSignal.timeout(40_000) },
        );
        const out = Buffer.from(response.result?.stdoutRaw ?? "").toString();
        equal(response.result?.exitCode, 0, `${response.message} ${out}`);
        return JSON.parse(out) as Record<string, string>;
      }

      /** What was not refused. */
      const succeeded = (said: Record<string, string>): readonly string[] =>
        Object.entries(said)
          .filter(
            ([, outcome]) => !/^(grpc-status (7|16) |40[13] |EACCES|ENOENT|EPERM|ECONNREFUSED|not there)/.test(outcome),
          )
          .map(([name, outcome]) => `${name}: ${outcome}`);

      test("is refused everything, with a reason", async () => {
        const said = await attack("on");
        deepEqual(succeeded(said), []);
        ok(!existsSync(join(proofs, "proof")), "nothing ran as the node's user");
        match(said["Execute"] ?? "", /a task of this node.*token/);
        match(said["GET /metrics"] ?? "", /a task of this node.*token/);
      });

      test("is reported to be able to act as the operator where nothing separates them", () =>
        equal(
          lab.log.some((line) => /actions run as the node's own user/.test(line)),
          !isApart,
        ));

      if (!isApart)
        test("is not run where a second tenant relies on the separation", async () => {
          const tokens = ["mill", "bakery"].map((tenant) => ({
            name: tenant,
            tenant,
            roles: ["member"],
            sha256: tokenSha256(tenant),
          }));
          const edge = { listen: ["127.0.0.1:0"], identity: { tokens } };
          await rejects(
            async () => {
              await using _lab = await Lab.open({ edge, worker: { sandbox: kind } });
            },
            (error) => isFault(error, "invalid") && /install bubblewrap.*as root.*worker\.enabled/.test(error.message),
          );
          await using alone = await Lab.open({ edge, worker: { enabled: false } });
          ok(alone.node);
        });

      if (kind === "bubblewrap")
        test("without a network reaches nothing", async () => {
          const said = await attack("off");
          deepEqual(succeeded(said), []);
          equal(said["Execute"], "ECONNREFUSED");
        });

      test("does not affect other callers on this machine", async () => {
        const { response } = await bench.execute(await bench.sh(`echo fine # ${randomUUID()}`));
        equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "fine\n");
      });
    },
  );
