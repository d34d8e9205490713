// Commands that use HTTP find the node of a data folder, however it listens, and send their token to no other server.
import { deepEqual, equal, match, notEqual } from "node:assert/strict";
import { mkdtemp, readFile, rename, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createServer } from "node:tls";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder, lockFolder, publishedEdge, publishEdge } from "#app/node/data-folder.ts";
import { urlFromHere } from "#app/node/edge-notice.ts";
import { ownerToken } from "#app/node/owner-token.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { testAuthority } from "#edge/testing/certificate.ts";
import { clearAway } from "./clear-away.ts";
import { until } from "./until.ts";
import { runLine } from "#cli/line.ts";
import { serverOf } from "#app/client/server.ts";

const token = "ops-secret-0123456789-0123456789-0123456789";
const identity = { tokens: [{ name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(token) }] };
const authority = testAuthority();
const elsewhere = { cn: "node", dns: ["node.example"] };

const folder = await mkdtemp(join(tmpdir(), "millrace-server-"));
after(() => clearAway(folder));

let files = 0;
async function file(text: string, path = join(folder, `${(files += 1)}.pem`)): Promise<string> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
  return path;
}

const tlsOf = async ({ cert, key } = authority.issue(elsewhere), more: object = {}) => ({
  certificate: await file(cert),
  key: await file(key),
  reload: "1s",
  ...more,
});

class Scene implements AsyncDisposable {
  readonly data: string;
  readonly node: Running;

  private constructor(data: string, node: Running) {
    this.data = data;
    this.node = node;
  }

  static async open(edge: object): Promise<Scene> {
    const data = await mkdtemp(join(folder, "data-"));
    const memory = { journal: { kind: "memory" }, blobs: { kind: "disk" }, mesh: { listen: "127.0.0.1:0" } };
    const config = Config.parse({ cluster: { shards: 1 }, ...memory, worker: { enabled: false }, edge });
    return new Scene(data, await startNode(config, dataFolder(data), { log: () => {} }));
  }

  run(...args: readonly string[]) {
    return line({ MILLRACE_TOKEN: token }, ...args, "--data", this.data);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node.stop();
  }
}

async function line(env: NodeJS.ProcessEnv, ...args: readonly string[]) {
  const [out, notes]: [string[], string[]] = [[], []];
  const code = await runLine(args, {
    env,
    isTerminal: false,
    out: (text) => out.push(text),
    note: (text) => notes.push(text),
    progress: () => {},
  });
  return { code, out: out.join("\n"), notes: notes.join("\n") };
}

describe("a command finds the node of its data folder", { timeout: 60_000 }, () => {
  const ways = [
    { name: "in clear on one address", edge: async () => ({ listen: ["127.0.0.1:0"], identity }) },
    {
      name: "in clear on all addresses",
      edge: async () => ({ listen: ["0.0.0.0:0"], identity: { ...identity, cleartext: true } }),
    },
    {
      name: "with TLS on all addresses",
      edge: async () => ({ listen: ["0.0.0.0:0"], identity, tls: await tlsOf() }),
    },
    {
      name: "with TLS, a certificate that has ended, and an optional one of its callers",
      edge: async () => {
        const ended = authority.issue({ ...elsewhere, notAfter: new Date(Date.now() - 1_000) });
        return { listen: ["127.0.0.1:0"], identity, tls: await tlsOf(ended, { clientCa: await file(authority.cert) }) };
      },
    },
  ];
  for (const { name, edge } of ways)
    test(name, async () => {
      await using scene = await Scene.open(await edge());
      const peers = await scene.run("peers", "--json");
      deepEqual([peers.code, peers.notes], [0, ""]);
      match(peers.out, /"self":true/);
      const large = join(scene.data, "large");
      await writeFile(large, Buffer.alloc(3_000_000, "millrace"));
      const put = await scene.run("cache", "put", large, "--json");
      equal(put.code, 0, put.notes);
      const { digest } = JSON.parse(put.out) as { digest: string };
      const back = join(scene.data, "back");
      equal((await scene.run("cache", "get", digest, back)).code, 0);
      deepEqual(await readFile(back), await readFile(large));
      equal((await scene.run("cache", "stat")).code, 0);
      equal((await scene.run("build", "list")).code, 0);
      match((await scene.run("why", "j0-99")).notes, /status=404/);
      match((await scene.run("peers", "--token", "wrong")).notes, /status=401/);
      match((await scene.run("drain", "--stay")).out, /^drained: /m);
      match((await scene.run("drain", "--resume")).out, /^serving: /);
    });

  test("and sees it leave", async () => {
    const scene = await Scene.open({ listen: ["127.0.0.1:0"], identity, tls: await tlsOf() });
    const stopped = scene.node.drain.left.then(() => scene.node.stop());
    const { code, out, notes } = await scene.run("drain");
    deepEqual([code, notes], [0, ""]);
    match(out, /left: the node has ended$/);
    await stopped;
    equal(publishedEdge(dataFolder(scene.data)), undefined);
  });

  test("although its certificate was renewed in the meantime", async () => {
    const tls = await tlsOf();
    await using scene = await Scene.open({ listen: ["127.0.0.1:0"], identity, tls });
    const told = () => publishedEdge(dataFolder(scene.data))?.certificate;
    const first = told();
    const renewed = testAuthority("another").issue(elsewhere);
    await file(renewed.key, tls.key);
    await file(renewed.cert, tls.certificate);
    await until("the new one is told", () => told() !== first, { limitMs: 60_000, everyMs: 20 });
    const { code, notes } = await scene.run("peers");
    deepEqual([code, notes], [0, ""]);
  });

  test("that asks for client certificates, and says what to do", async () => {
    const tls = await tlsOf(undefined, { clientCa: await file(authority.cert), clientCertificate: "required" });
    await using scene = await Scene.open({ listen: ["127.0.0.1:0"], identity, tls });
    for (let times = 0; times < 20; times += 1) {
      const { code, notes } = await scene.run("peers");
      equal(code, 1);
      match(notes, /requires a client certificate.*wants=--cert FILE and --cert-key FILE/);
    }
  });
});

test("a server with another certificate than the node's receives nothing", { timeout: 60_000 }, async () => {
  const data = await mkdtemp(join(folder, "data-"));
  const node = authority.issue(elsewhere);
  const impostor = authority.issue(elsewhere);
  let heard = "";
  const server = createServer(impostor, (socket) => {
    socket.on("error", () => {});
    socket.on("data", (part: Buffer) => (heard += part.toString()));
  });
  await new Promise<void>((there) => server.listen(0, "127.0.0.1", there));
  try {
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const run = () => line({ MILLRACE_TOKEN: token }, "drain", "--data", data);
    {
      await using _notice = await publishEdge(dataFolder(data), { url, certificate: node.cert });
      const { code, notes } = await run();
      equal(code, 1);
      match(notes, /drain node: invalid .*does not show the node's certificate/);
    }
    await using _none = await publishEdge(dataFolder(data), { url });
    match((await run()).notes, /unavailable/);
    equal(heard, "");
  } finally {
    server.close();
  }
});

test(
  "a node given by address is trusted by who signed its certificate, and for its name",
  { timeout: 60_000 },
  async () => {
    const here = authority.issue({ cn: "node", ip: ["127.0.0.1"] });
    await using scene = await Scene.open({ listen: ["127.0.0.1:0"], identity, tls: await tlsOf(here) });
    await using other = await Scene.open({ listen: ["127.0.0.1:0"], identity, tls: await tlsOf() });
    const urlOf = ({ node }: Scene): string => `https://127.0.0.1:${node.edgePorts[0]}`;
    const ca = await file(authority.cert);
    const env = { MILLRACE_TOKEN: token };
    const server = ["--server", urlOf(scene)] as const;
    equal((await line(env, "peers", ...server, "--ca", ca)).code, 0);
    equal((await line({ ...env, MILLRACE_CA: ca, MILLRACE_SERVER: urlOf(scene) }, "peers")).code, 0);
    match((await line(env, "peers", ...server)).notes, /certificate is not trusted: \w+ wants=--ca FILE/);
    const stranger = await file(testAuthority("stranger").cert);
    match((await line(env, "peers", ...server, "--ca", stranger)).notes, /certificate is not trusted/);
    match((await line(env, "peers", "--server", urlOf(other), "--ca", ca)).notes, /not trusted: ERR_TLS_CERT_ALTNAME/);
    match((await line(env, "peers", ...server, "--ca", here.key)).notes, /this file has no certificates/);
  },
);

test("the published address can be dialled from this machine", () => {
  equal(urlFromHere(["10.0.0.7:1", "127.0.0.1:2"], false), "http://127.0.0.1:2");
  equal(urlFromHere(["10.0.0.7:1"], true), "https://10.0.0.7:1");
  for (const any of ["0.0.0.0:3", "[::]:3", "[::0]:3", "[::ffff:0.0.0.0]:3", "[0:0:0:0:0:0:0:0]:3", "0:3"])
    equal(urlFromHere([any], true), "https://127.0.0.1:3", any);
  equal(urlFromHere(["[::1]:4"], false), "http://[::1]:4");
  notEqual(urlFromHere(["[::1]:4", "0.0.0.0:5"], false), "http://127.0.0.1:5");
});

describe("the token of a data folder", { timeout: 60_000 }, () => {
  const asOwner = (data: string, ...args: readonly string[]) => line({}, ...args, "--data", data);

  test("is sent by commands of its owner, with and without TLS, whatever else the node accepts", async () => {
    const edges = [
      { listen: ["127.0.0.1:0"] },
      { listen: ["127.0.0.1:0"], identity },
      { listen: ["0.0.0.0:0"], identity, tls: await tlsOf() },
    ];
    for (const edge of edges) {
      await using scene = await Scene.open(edge);
      const peers = await asOwner(scene.data, "peers", "--json");
      deepEqual([peers.code, peers.notes], [0, ""]);
      match((await asOwner(scene.data, "drain", "--stay")).out, /^drained: /m);
      match((await asOwner(scene.data, "peers", "--token", "wrong")).notes, /status=401/, "what is said goes first");
    }
  });

  test("is missing for a command that was given only an address, and it says so", async () => {
    await using scene = await Scene.open({ listen: ["127.0.0.1:0"] });
    const [port] = scene.node.edgePorts;
    const { code, notes } = await line({}, "drain", "--server", `http://127.0.0.1:${port}`);
    equal(code, 1);
    match(notes, /status=403 .*wants=\$MILLRACE_TOKEN, or --data FOLDER/);
  });

  test("gives a link that signs a browser in once", async () => {
    await using scene = await Scene.open({ listen: ["127.0.0.1:0"] });
    const { out, code } = await asOwner(scene.data, "login", "--json");
    equal(code, 0);
    const { url, forMs } = JSON.parse(out) as { readonly url: string; readonly forMs: number };
    equal(forMs, 300_000);
    const signedIn = await fetch(url);
    match(signedIn.headers.get("set-cookie") ?? "", /^millrace_session=/);
    equal((await fetch(url)).status, 401, "not twice");
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    equal((await fetch(new URL("/metrics", url), { headers: { cookie } })).status, 200);
    const people = await asOwner(scene.data, "login");
    match(people.out, /^http:\/\/127\.0\.0\.1:\d+\/login\?code=[\w-]+\nOpen it in a browser within 5/);
  });

  test("is not sent to another server at the address of a dead node", async () => {
    const data = await mkdtemp(join(folder, "dead-"));
    const secret = await ownerToken(dataFolder(data));
    const heard: string[] = [];
    const other = createHttpServer((request, response) => {
      heard.push(request.headers.authorization ?? "none");
      response.writeHead(401).end("{}");
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    try {
      await publishEdge(dataFolder(data), { url: `http://127.0.0.1:${(other.address() as AddressInfo).port}` });
      for (const holder of [undefined, "2147483647 1", `${process.pid} 1`, ""]) {
        if (holder !== undefined) await writeFile(join(data, "up.pid"), holder);
        equal((await asOwner(data, "peers")).code, 1);
        equal(heard.pop(), "none", holder ?? "no lock");
      }
      await using _lock = await lockFolder(dataFolder(data));
      await publishEdge(dataFolder(data), { url: `http://127.0.0.1:${(other.address() as AddressInfo).port}` });
      await asOwner(data, "peers");
      equal(heard.pop(), `Bearer ${secret}`, "the node that has the folder is told");
      deepEqual(serverOf({ data }, {}).headers, { authorization: `Bearer ${secret}` });
      await publishEdge(dataFolder(data), { url: "https://node.example:8980" });
      deepEqual(serverOf({ data }, {}).headers, {}, "it counts on this machine only, and goes nowhere else");
    } finally {
      other.close();
    }
  });
});
