/** Two nodes in one mesh, and their answers about it over HTTP. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { startNode, type Running } from "./compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { meshListenDefault } from "#app/config/mesh-config.ts";

type Peers = { readonly peers: readonly { readonly name: string; readonly state: string; readonly kind: string }[] };

const patience = { limitMs: 60_000, everyMs: 50 };

async function start(folder: string, name: string, mesh: object | undefined, edge: object = {}): Promise<Running> {
  const config = Config.parse({
    node: { name },
    edge: { listen: ["127.0.0.1:0"], ...edge },
    journal: { kind: "memory" },
    blobs: { kind: "memory" },
    worker: { enabled: false },
    ...(mesh && { mesh: { listen: "127.0.0.1:0", profile: "local", ...mesh } }),
  });
  return await startNode(config, dataFolder(join(folder, name)), { log: () => {} });
}

const ask = (node: Running, method = "GET", token = node.owner): Promise<Response> =>
  fetch(`http://127.0.0.1:${node.edgePorts[0]}/peers`, {
    method,
    ...(token !== "" && { headers: { authorization: `Bearer ${token}` } }),
  });

const peersOf = async (node: Running): Promise<Peers["peers"]> => ((await (await ask(node)).json()) as Peers).peers;

test("nodes in a mesh list each other at /peers; one that stops has left", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-peers-"));
  await using undo = new AsyncDisposableStack();
  undo.defer(() => clearAway(folder));
  const keys = [Buffer.from(new Uint8Array(16).fill(3)).toString("base64")];
  const keysFile = join(folder, "keys.json");
  await writeFile(keysFile, JSON.stringify(keys));
  const alpha = await start(folder, "alpha", { keys, label: "test" });
  undo.defer(() => alpha.stop());
  const seed = alpha.mesh?.peers().address ?? "";
  const beta = await start(folder, "beta", { keysFile, label: "test", join: [seed] });
  await using betaStop = new AsyncDisposableStack();
  betaStop.defer(() => beta.stop());

  const areAlive = async (node: Running): Promise<boolean> =>
    (await peersOf(node)).filter(({ state, kind }) => state === "alive" && kind === "millrace").length === 2;
  await until("each lists both", async () => (await areAlive(alpha)) && (await areAlive(beta)), patience);
  deepEqual(
    (await peersOf(beta)).map(({ name }) => name),
    ["alpha", "beta"],
  );

  const metrics = await (
    await fetch(`http://127.0.0.1:${alpha.edgePorts[0]}/metrics`, {
      headers: { authorization: `Bearer ${alpha.owner}` },
    })
  ).text();
  match(metrics, /millrace_mesh_members\{state="alive"\} 2/);
  match(metrics, /millrace_mesh_events_total\{event="deaths"\} 0/);

  await betaStop.disposeAsync();
  const stateOfBeta = async () => (await peersOf(alpha)).find(({ name }) => name === "beta")?.state;
  await until("beta has left", async () => (await stateOfBeta()) === "left", patience);
});

test("with the default port a node takes another if that is taken; with a configured one it fails", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-peers-"));
  await using undo = new AsyncDisposableStack();
  undo.defer(() => clearAway(folder));
  const first = await start(folder, "first", { listen: meshListenDefault });
  undo.defer(() => first.stop());
  const address = first.mesh?.peers().address ?? "";
  const second = await start(folder, "second", { listen: meshListenDefault, join: [address] });
  undo.defer(() => second.stop());
  await until("they found each other", async () => (await peersOf(first)).length === 2, patience);
  await rejects(start(folder, "third", { listen: second.mesh?.peers().address }), (error) =>
    isFault(error, "exhausted"),
  );
});

test("/peers: 404 without a mesh, only GET, not for strangers; a bad keys file shows no key", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-peers-"));
  await using undo = new AsyncDisposableStack();
  undo.defer(() => clearAway(folder));
  const alone = await start(folder, "alone", undefined);
  undo.defer(() => alone.stop());
  equal((await ask(alone)).status, 404);
  match(await (await ask(alone)).text(), /in no mesh/);
  equal((await ask(alone, "POST")).status, 405);
  equal((await ask(alone, "GET", "")).status, 403);

  const identity = { tokens: [{ name: "op", tenant: "*", roles: ["operator"], sha256: "0".repeat(64) }] };
  const guarded = await start(folder, "guarded", {}, { identity });
  undo.defer(() => guarded.stop());
  equal((await ask(guarded, "GET", "")).status, 401);
  equal((await ask(guarded)).status, 200, "the owner of the folder");

  const keysFile = join(folder, "keys.json");
  await writeFile(keysFile, '["secret-secret-secret"]');
  await rejects(start(folder, "bad", { keysFile }), (error) => {
    ok(isFault(error, "invalid") && !String(error).includes("secret-secret"), String(error));
    return true;
  });
});
