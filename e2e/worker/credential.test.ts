// An action of a build that asks for a token of its claim: it puts an artifact of its job, and neither its result, nor
// its outputs, nor the next action has the token.
import { deepEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { listArtifacts } from "#api/task-calls.ts";
import { Bench, Lab, secrets, tokensFor } from "#e2e/node/build/execution-lab.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";

const millrace = `${process.execPath} ${join(import.meta.dirname, "../../src/cli/main.ts")}`;
const asks = {
  properties: [
    { name: "network", value: "on" },
    { name: "taskCredential", value: "on" },
  ],
};
const line = `
set -e
echo hello > note
HOME=/tmp ${millrace} artifact put note
if HOME=/tmp ${millrace} job list; then exit 8; fi
mkdir out; cp note out/note
`;

describe("an action with a credential", { skip: process.platform !== "linux", timeout: 180_000 }, () => {
  let lab: Lab;
  let bench: Bench;
  const ask: Fetch = (path, init) =>
    fetch(`http://127.0.0.1:${lab.node?.edgePorts[0]}${path}`, {
      ...init,
      headers: { ...(init.headers as object), authorization: `Bearer ${secrets.mill}` },
    });

  before(async () => {
    lab = await Lab.open({ edge: { listen: ["127.0.0.1:0"], identity: { tokens: tokensFor(["member"]) } } });
    bench = new Bench(lab.client(secrets.mill));
  });
  after(async () => await lab[Symbol.asyncDispose]());

  test("calls its node, and leaves nothing of the token", async () => {
    // The whole folder is an output: the token's file must not be in it.
    const action = await bench.sh(line, { outputPaths: ["."] }, {}, { doNotCache: true, platform: asks });
    const { response, name } = await bench.execute(action);
    const { result } = response;
    ok(result && result.exitCode === 0, Buffer.from(result?.stderrRaw ?? response.message).toString());
    const job = name.slice(name.lastIndexOf("/") + 1).split(".")[0] ?? "";
    const { items } = await callEndpoint(ask, listArtifacts, { params: { job }, query: {} });
    deepEqual(
      items.map((one) => [one.name, one.sizeBytes]),
      [["note", 6]],
    );
    const next = await bench.execute(
      await bench.sh("ls -A; env; ls -A /tmp; find / -name .millrace-token 2>/dev/null"),
    );
    const said = Buffer.from(next.response.result?.stdoutRaw ?? []).toString();
    ok(!said.includes("MILLRACE_") && !said.includes(".millrace-token"), said);
  });
});
