/** The program itself in a mesh with a serf agent. */
import { deepEqual, equal, match } from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { SerfAgent, serfMissing } from "./serf-agent.ts";

const patience = { limitMs: 60_000, everyMs: 100 };
const postgres = await sharedPostgres();
const program = join(import.meta.dirname, "../../src/cli/main.ts");

const title = "as a serf agent sees it: tags, peers, killed with -9, started again, stopped politely";

test(`the program ${title}`, { skip: serfMissing || postgres.skip }, async () => {
  await using one = await SerfAgent.start("one");
  const folder = await mkdtemp(join(tmpdir(), "millrace-mesh-"));
  const port = await freePort();
  await mkdir(join(folder, "shared"));
  await writeFile(join(folder, "config.yaml"), JSON.stringify(await settings(port, join(folder, "shared"))));
  const start = () => {
    const child = spawn(process.execPath, [program, "up", "--data", folder, "--join", one.address]);
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { child, ended };
  };
  const peers = () => spawnText([program, "peers", "--data", folder, "--json"]);
  let node = start();
  try {
    await until("it is alive", async () => (await one.status("alpha")) === "alive", patience);
    await until("its state is up", async () => (await one.members()).get("alpha")?.tags["state"] === "up", patience);
    const { tags } = (await one.members()).get("alpha") ?? {};
    equal(tags?.["role"], "millrace");
    match(tags?.["load"] ?? "", /^0\/\d+$/);
    match(tags?.["edge"] ?? "", /^127\.0\.0\.1:\d+$/);
    const headers = { authorization: `Bearer ${readOwnerToken(dataFolder(folder))}` };
    const listed = (await fetch(`http://${tags?.["edge"]}/peers`, { headers }).then((answer) => answer.json())) as {
      peers: { name: string; state: string; kind: string }[];
    };
    deepEqual(
      listed.peers.map(({ name, state, kind }) => ({ name, state, kind })),
      [
        { name: "alpha", state: "alive", kind: "millrace" },
        { name: "one", state: "alive", kind: "other" },
      ],
    );
    match(await peers(), /"name":"one"/);
    node.child.kill("SIGKILL");
    await node.ended;
    await until("it has failed", async () => (await one.status("alpha")) === "failed", patience);
    node = start();
    await until("it is back", async () => (await one.status("alpha")) === "alive", patience);
    node.child.kill("SIGTERM");
    equal(await node.ended, 0);
    await until("it has left", async () => (await one.status("alpha")) === "left", patience);
  } finally {
    node.child.kill("SIGKILL");
    await node.ended;
    clearAway(folder);
  }
});

after(() => postgres.stop());

/** What a node that joins others has to share with them. */
async function settings(port: number, directory: string): Promise<object> {
  const journal = { kind: "postgres", url: await postgres.server().freshDatabase() };
  return {
    node: { name: "alpha" },
    edge: { listen: ["127.0.0.1:0"] },
    journal,
    blobs: { kind: "disk", authoritative: { kind: "directory", directory, names: journal } },
    mesh: { listen: `127.0.0.1:${port}`, profile: "local" },
  };
}

function spawnText(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => void (text += chunk.toString()));
  return new Promise((resolve) => child.once("close", () => resolve(text)));
}
