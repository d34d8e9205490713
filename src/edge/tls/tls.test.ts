import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { connect, createServer, type ConnectionOptions, type TLSSocket } from "node:tls";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { until } from "#testing/until.ts";
import { testAuthority } from "#edge/testing/certificate.ts";
import { readPeerCertificate, type PeerCertificate } from "./peer-certificate.ts";
import { Tls } from "./tls-config.ts";
import { loadTls, tlsServerOptions } from "./tls-files.ts";
import { TlsReload } from "./tls-reload.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-tls-"));
after(() => rm(folder, { recursive: true, force: true }));
const authority = testAuthority();
const localhost = authority.issue({ cn: "one", dns: ["localhost"], ip: ["127.0.0.1"] });

let files = 0;
/** Written to another file and renamed, as certificate managers do. */
async function file(text: string, path = join(folder, `${(files += 1)}.pem`)): Promise<string> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
  return path;
}
const configOf = async (more: Record<string, unknown> = {}): Promise<Tls> =>
  Tls.parse({ certificate: await file(localhost.cert), key: await file(localhost.key), reload: "1s", ...more });

async function why(config: Tls): Promise<string> {
  try {
    await loadTls(config);
    return "none";
  } catch (error) {
    ok(isFault(error), String(error));
    match(error.message, /^load TLS files: /);
    return `${error.code}: ${String(error.facts["why"])}`;
  }
}

describe("TLS files", () => {
  test("are loaded, with their expiry date", async () => {
    const { context, expiresAtMs } = await loadTls(await configOf());
    equal(context.minVersion, "TLSv1.2");
    ok(expiresAtMs > Date.now() + 20 * 86_400_000);
  });

  test("are refused with a text that says what to do", async () => {
    const other = authority.issue({ cn: "other" });
    match(await why(await configOf({ key: join(folder, "none.pem") })), /^not-found: there is no such file: check/);
    match(await why(await configOf({ key: folder })), /^unavailable: it is a folder/);
    match(await why(await configOf({ key: await file(other.key) })), /does not belong to the certificate/);
    match(await why(await configOf({ key: await file(localhost.cert) })), /swapped/);
    match(await why(await configOf({ certificate: await file(localhost.key) })), /swapped/);
    match(await why(await configOf({ certificate: await file("hello") })), /not a PEM certificate/);
    match(await why(await configOf({ key: await file("hello") })), /not a PEM key/);
    const locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    match(await why(await configOf({ key: await file(locked) })), /passphrase/);
    match(await why(await configOf({ clientCa: await file("hello") })), /not a PEM certificate/);
    match(await why(await configOf({ key: await file("x".repeat(1024 * 1024 + 1)) })), /^exhausted/);
  });

  test("never show a key's text in an error", async () => {
    const broken = localhost.key.replace(/[A-Z]/g, "?");
    await rejects(loadTls(await configOf({ key: await file(broken) })), (error) => {
      ok(isFault(error));
      ok(!JSON.stringify([error.message, String(error.cause)]).includes(broken.slice(40, 60)));
      return true;
    });
  });
});

describe("a TLS server", () => {
  type Rig = {
    readonly port: number;
    readonly clock: ManualClock;
    readonly troubles: unknown[];
    readonly peers: (PeerCertificate | undefined)[];
    readonly open: (options?: ConnectionOptions) => Promise<TLSSocket>;
  };

  async function serving(config: Tls, run: (rig: Rig) => Promise<void>): Promise<void> {
    const clock = new ManualClock();
    const troubles: unknown[] = [];
    const peers: (PeerCertificate | undefined)[] = [];
    using reload = await TlsReload.start(config, {
      clock,
      onReload: () => {},
      onTrouble: (error) => troubles.push(error),
    });
    const sockets = new Set<TLSSocket>();
    const server = createServer({ ...tlsServerOptions(config), ...reload.current.context }, (socket) => {
      peers.push(readPeerCertificate(socket));
      socket.on("error", () => {});
      socket.pipe(socket);
    });
    reload.keepUpToDate(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const open = async (options: ConnectionOptions = {}): Promise<TLSSocket> => {
      const socket = connect({ port, host: "127.0.0.1", ca: authority.cert, ALPNProtocols: ["h2"], ...options });
      sockets.add(socket);
      await once(socket, "secureConnect");
      return socket;
    };
    try {
      await run({ port, clock, troubles, peers, open });
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  }
  const nameOf = (socket: TLSSocket): unknown => socket.getPeerCertificate().subject.CN;

  test("negotiates h2 first, then http/1.1, and nothing older than TLS 1.2", async () => {
    await serving(await configOf(), async ({ open }) => {
      equal((await open({ ALPNProtocols: ["http/1.1", "h2"] })).alpnProtocol, "h2");
      equal((await open({ ALPNProtocols: ["http/1.1"] })).alpnProtocol, "http/1.1");
      equal((await open({ maxVersion: "TLSv1.2" })).getProtocol(), "TLSv1.2");
      await rejects(open({ maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "ALL:@SECLEVEL=0" }));
      await rejects(open({ maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-SHA256" }));
    });
  });

  test("serves new files to new connections, and keeps the old connections", async () => {
    const config = await configOf();
    await serving(config, async ({ open, clock, troubles }) => {
      const early = await open();
      equal(nameOf(early), "one");
      const renewed = authority.issue({ cn: "two", ip: ["127.0.0.1"] });
      await file(renewed.cert, config.certificate);
      // Half of the change is there: the old pair stays in use.
      await until("half a change is reported", async () => (await clock.advance(1_000), troubles.length > 0));
      equal(nameOf(await open()), "one");
      await file(renewed.key, config.key);
      await until("the new certificate is served", async () => {
        await clock.advance(1_000);
        return nameOf(await open()) === "two";
      });
      early.write("still here");
      const [echo] = (await once(early, "data")) as [Buffer];
      equal(echo.toString(), "still here");
    });
  });

  test("reads the names of client certificates, and whether they are trusted", async () => {
    const config = await configOf({ clientCa: await file(authority.cert) });
    const worker = authority.issue({
      cn: "build-7",
      o: "acme",
      uri: ["spiffe://acme/worker/7"],
      dns: ["b7.acme.example"],
    });
    const stranger = testAuthority("stranger").issue({ cn: "build-7", uri: ["spiffe://acme/worker/7"] });
    await serving(config, async ({ open, peers }) => {
      await open(worker);
      await open(stranger);
      await open();
      await until("all three are served", () => peers.length === 3);
      deepEqual(
        peers.map((peer) => peer?.trusted),
        [true, false, undefined],
      );
      deepEqual(peers[0]?.names, [
        { kind: "DNS", value: "b7.acme.example" },
        { kind: "URI", value: "spiffe://acme/worker/7" },
        { kind: "CN", value: "build-7" },
        { kind: "O", value: "acme" },
      ]);
    });
  });

  test("refuses callers without a certificate where one is required", async () => {
    const config = await configOf({ clientCa: await file(authority.cert), clientCertificate: "required" });
    await serving(config, async ({ open, peers }) => {
      // With TLS 1.3 the client learns of it only after its side of the handshake.
      const bare = await open();
      await once(bare, "error");
      await rejects(open({ maxVersion: "TLSv1.2" }));
      await open(authority.issue({ cn: "build-7" }));
      await until("the one with a certificate is served", () => peers.length === 1);
    });
  });
});
