/** How commands reach nodes that listen on no port, or that require client certificates. */
import { deepEqual, equal, match } from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { testAuthority } from "#edge/testing/certificate.ts";
import { clearAway } from "#testing/clear-away.ts";
import { runLine, type Terminal } from "#cli/line.ts";

const root = await mkdtemp(join(tmpdir(), "millrace-server-"));
after(() => clearAway(root));

async function running(name: string, edge: unknown) {
  const folder = dataFolder(join(root, name));
  const config = Config.parse({ cluster: { shards: 1 }, worker: { enabled: false }, edge });
  const node = await startNode(config, folder, { log: () => {} });
  return { folder, node, [Symbol.asyncDispose]: () => node.stop() };
}

async function run(...args: readonly string[]) {
  const [out, notes]: [string[], string[]] = [[], []];
  const terminal: Terminal = {
    env: {},
    isTerminal: false,
    out: (line) => out.push(line),
    note: (line) => notes.push(line),
    progress: () => {},
  };
  return { code: await runLine(args, terminal), out, notes: notes.join("\n") };
}

function file(name: string, text: string): string {
  const path = join(root, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

describe("a node that listens on no port", () => {
  test("is reached by its data folder and by its Unix socket, which only its user may open", async () => {
    await using node = await running("no-port", { listen: [] });
    const { edgeSocket, path } = node.folder;
    deepEqual(node.node.edgeAddresses, []);
    equal(statSync(edgeSocket).mode & 0o777, 0o600);
    const byFolder = await run("nodes", "--data", path);
    equal(byFolder.code, 0, byFolder.notes);
    equal(byFolder.out.length, 2);
    const denied = await run("nodes", "--server", `unix:${edgeSocket}`);
    equal(denied.code, 1, "being on this machine is no credential");
    match(denied.notes, /MILLRACE_TOKEN|--data/);
    const browser = await run("login", "--data", path);
    equal(browser.code, 1);
    match(browser.notes, /no port that a browser could open/);
    const door = await run("build", "list", "--data", path);
    deepEqual([door.code, door.out.length], [0, 1], door.notes);
  });

  test("is reported as not there when it has stopped", async () => {
    const { folder } = await running("stopped", { listen: [] }).then(async (node) => {
      await node[Symbol.asyncDispose]();
      return node;
    });
    const gone = await run("nodes", "--server", `unix:${folder.edgeSocket}`);
    equal(gone.code, 1);
    match(gone.notes, /unix:.*edge\.sock.*no node answers there/);
  });
});

describe("a node that requires client certificates", () => {
  const authority = testAuthority();
  const served = authority.issue({ cn: "node", dns: ["localhost"], ip: ["127.0.0.1"] });
  const ops = authority.issue({ cn: "ops" });
  const ca = file("ca.pem", authority.cert);
  const edge = {
    listen: ["127.0.0.1:0"],
    tls: {
      certificate: file("node.pem", served.cert),
      key: file("node.key", served.key),
      clientCa: ca,
      clientCertificate: "required",
    },
    identity: { certificates: [{ match: "CN:ops", name: "ops", tenant: "*", roles: ["operator"] }] },
  };
  const client = ["--cert", file("ops.pem", ops.cert), "--cert-key", file("ops.key", ops.key)];

  test("is reached with --cert and --cert-key, by its address and by its data folder", async () => {
    await using node = await running("mutual", edge);
    const url = `https://${node.node.edgeAddresses[0]}`;
    const byAddress = await run("nodes", "--server", url, "--ca", ca, ...client);
    equal(byAddress.code, 0, byAddress.notes);
    const byFolder = await run("nodes", "--data", node.folder.path, ...client);
    equal(byFolder.code, 0, byFolder.notes);
    for (const target of [
      ["--server", url, "--ca", ca],
      ["--data", node.folder.path],
    ]) {
      const without = await run("nodes", ...target);
      equal(without.code, 1);
      match(without.notes, /client certificate.*--cert FILE and --cert-key FILE/s);
    }
    const stranger = testAuthority("another").issue({ cn: "ops" });
    const shown = ["--cert", file("x.pem", stranger.cert), "--cert-key", file("x.key", stranger.key)];
    const refused = await run("nodes", "--server", url, "--ca", ca, ...shown);
    equal(refused.code, 1);
  });

  test("mistakes are named, without a key's text", async () => {
    const other = authority.issue({ cn: "other" });
    const at = ["nodes", "--server", "https://127.0.0.1:1"];
    match((await run(...at, "--cert", ca)).notes, /needs --cert and --cert-key/);
    const wrong = await run(...at, "--cert", join(root, "ops.pem"), "--cert-key", file("other.key", other.key));
    match(wrong.notes, /the key is not the certificate's/);
    const broken = await run(...at, "--cert", join(root, "ops.pem"), "--cert-key", file("broken.key", "secret text"));
    match(broken.notes, /no private key as PEM/);
    equal(broken.notes.includes("secret text"), false);
  });
});
