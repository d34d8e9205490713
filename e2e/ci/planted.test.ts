/** Secrets planted wherever a job can put them: nothing that is kept, sent or shown has one of them. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { runLine } from "#cli/line.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const skip = process.platform === "linux" ? false : "needs linux: lists its processes";
const secret = "Hunter2/Correct+Horse=Battery&Staple";
const client = import.meta.resolve("@actions/artifact");
/** As masks know them: plain, and as other programs would write it. */
const forms: readonly string[] = [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  ...[0, 1, 2].map((shift) =>
    Buffer.from("x".repeat(shift) + secret)
      .toString("base64")
      .slice(shift === 0 ? 0 : 4, -4),
  ),
];

const program = `
const { DefaultArtifactClient } = await import(${JSON.stringify(client)});
import { writeFileSync } from "node:fs";
writeFileSync("plain.txt", "no secret\\n");
const client = new DefaultArtifactClient();
const put = async (name) =>
  await client.uploadArtifact(name, ["plain.txt"], ".").then(() => "put", (error) => error.message);
console.log("artifact", await put("fine"), "and", await put("x-Hunter2-" ), "and", await put(process.env.NAME));
`;

const workflow = `
name: planted
on: workflow_dispatch
env: { S: "\${{ secrets.TOKEN }}", N: "\${{ secrets.NAME }}", NODE: ${JSON.stringify(process.execPath)} }
jobs:
  plants:
    runs-on: ubuntu-latest
    outputs: { leaked: "\${{ steps.out.outputs.leaked }}", fine: "\${{ steps.out.outputs.fine }}" }
    steps:
      - run: |
          echo "plain $S"; printf '%s' "$S" | base64 -w0; echo
          printf 'x%s' "$S" | base64 -w0; echo; printf 'xx%s' "$S" | base64 -w0; echo
          "$NODE" -p 'encodeURIComponent(process.env.S)'; "$NODE" -p 'JSON.stringify(process.env.S)'
          for i in $(seq 1 5); do printf '%s' "$S" | cut -c1-20 | tr -d '\\n'; printf '%s\\n' "$S" | cut -c21-; done
          echo "::error title=$S::an error with $S"; echo "::warning file=$S::w"; echo "::notice::$S"
          echo "::group::group $S"; echo "::endgroup::"; echo "::debug::$S"; echo "::set-output name=old::$S"
          echo "::add-matcher::/no/$S"
          echo "# summary $S" >> "$GITHUB_STEP_SUMMARY"
        shell: bash
        continue-on-error: true
      - id: out
        run: |
          echo "leaked=with $S in it" >> "$GITHUB_OUTPUT"; echo "fine=yes" >> "$GITHUB_OUTPUT"
          echo "KEPT=$S" >> "$GITHUB_ENV"; echo "/no/$S" >> "$GITHUB_PATH"
          echo "$S" > in-a-file; echo "$S" > "$HOME/also"
          echo "state=$S" >> "$GITHUB_STATE"
      - name: "named \${{ secrets.TOKEN }}"
        run: 'true'
      - run: cd "/no/such/$S"
        continue-on-error: true
      - run: 'true'
        working-directory: "\${{ secrets.TOKEN }}"
        continue-on-error: true
      - uses: ./no/such/action
        with: { token: "\${{ secrets.TOKEN }}" }
        continue-on-error: true
      - if: env.S == 'Hunter2'
        run: 'true'
      - uses: actions/checkout@v4
      - uses: ./.github/actions/put
        env: { NAME: "\${{ secrets.NAME }}" }
      - run: ulimit -c; echo holding; sleep 2; sh -c 'kill -SEGV $$' || true; ls core* 2>/dev/null || echo no core
  tells:
    needs: plants
    runs-on: ubuntu-latest
    steps: [{ run: 'echo "told [\${{ needs.plants.outputs.leaked }}] [\${{ needs.plants.outputs.fine }}]"' }]
`;

test("no secret is kept, sent or shown", { skip, timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-planted-"));
  const spans: Buffer[] = [];
  const collector = createServer((request, response) => {
    request.on("data", (part: Buffer) => spans.push(part)).on("end", () => response.end("{}"));
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const file = join(mkdtempSync(join(tmpdir(), "millrace-planted-value-")), "value");
  using repository = new TestRepository({
    ".github/workflows/w.yml": workflow,
    ".github/actions/put/action.yml": "name: put\nruns: { using: node20, main: main.mjs }\n",
    ".github/actions/put/main.mjs": program,
  });
  const node = await NodeProcess.open(folder, {
    worker: { slots: 1 },
    cluster: { shards: 1 },
    traces: { endpoint, share: 1 },
  });
  const token = () => readOwnerToken(dataFolder(folder)) ?? "";
  const ci = new CiNode(`http://${node.address}`, token);
  try {
    await ci.register("mill/flour", repository.folder);
    const set = async (name: string, value: string): Promise<void> => {
      writeFileSync(file, value);
      const words = ["secret", "set", `ci/mill/flour/${name}`, "--file", file, "--server", ci.base];
      const said: string[] = [];
      const note = (line: string): void => void said.push(line);
      const env = { MILLRACE_TOKEN: token() };
      equal(await runLine(words, { env, out: note, note, progress() {} } as never), 0, said.join("\n"));
    };
    await set("TOKEN", secret);
    await set("NAME", "name-that-is-secret");
    const run = await ci.dispatch("mill/flour", "w");
    const soFar = async (): Promise<string> => await ci.log(run, "plants").catch(() => "");
    const isOver = async (): Promise<boolean> => (await ci.show(run)).status === "completed";
    await until("it holds", async () => (await soFar()).includes("| holding") || (await isOver()), {
      limitMs: 120_000,
    });
    match(await soFar(), /\| holding/);
    deepEqual(processesWith([secret, "name-that-is-secret"]), [], "no list of processes shows it");
    const shown = await ci.ended(run, 120_000);
    equal(shown.conclusion, "success", await ci.log(run, "plants"));
    const log = await ci.log(run, "plants");
    match(log, /\| plain \*\*\*\n/);
    match(log, /artifact put and put and .*there is a secret in it/);
    match(log, /\| 0\n[^]*\| no core\n/);
    match(await ci.log(run, "tells"), /told \[\] \[yes\]/);

    const said: Record<string, string> = { log, shown: JSON.stringify(shown), node: node.log };
    for (const path of [
      `/v1/runs/${run}`,
      `/v1/runs/${run}/why`,
      "/v1/runs?limit=10",
      `/v1/runs/${run}/artifacts`,
      `/v1/jobs/${run}`,
      `/v1/jobs/${run}/why`,
      "/v1/events?from=oldest&limit=1000",
      "/v1/secrets",
      "/v1/audit?limit=100",
      "/metrics",
    ])
      said[path] = await (await ci.fetch(path)).text();
    await node.stop();
    said["traces"] = Buffer.concat(spans).toString("latin1");
    ok(said["traces"].length > 0, "traces came");
    const found = Object.entries(said).flatMap(([where, text]) => foundIn(where, Buffer.from(text)));
    deepEqual([...found, ...filesWith(folder)], []);
  } finally {
    await node[Symbol.asyncDispose]();
    collector.closeAllConnections();
    collector.close();
    clearAway(folder);
    clearAway(dirname(file));
  }
});

function foundIn(where: string, bytes: Buffer): readonly string[] {
  return forms.flatMap((form) => {
    const at = bytes.indexOf(form);
    return at < 0 ? [] : [`${where}: ${bytes.subarray(Math.max(0, at - 120), at + 80).toString("latin1")}`];
  });
}

/** Of all processes of the machine but this one. */
function processesWith(texts: readonly string[]): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) return [];
    const read = (name: string): string => {
      try {
        return readFileSync(`/proc/${pid}/${name}`, "utf8");
      } catch {
        return ""; // it has ended
      }
    };
    return texts.some((text) => read("cmdline").includes(text)) ? [`${pid} ${read("cmdline")}`] : [];
  });
}

/** Everything that the node keeps: journal, history, records, blobs, streams, packed or not. */
function filesWith(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((file) => {
    if (!file.isFile()) return [];
    const path = join(file.parentPath, file.name);
    const bytes = readFileSync(path);
    return [bytes, ...unpacked(bytes)].flatMap((one) => foundIn(path.slice(folder.length), one));
  });
}

const magics = [
  { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), unpack: zstdDecompressSync },
  { magic: Buffer.from([0x1f, 0x8b, 0x08]), unpack: gunzipSync },
];

/** What is packed in it, from each place where something packed seems to begin. */
function* unpacked(bytes: Buffer): Generator<Buffer> {
  for (const { magic, unpack } of magics)
    for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1))
      try {
        yield unpack(bytes.subarray(at));
      } catch {
        // it was no beginning, or other bytes follow it
      }
}
