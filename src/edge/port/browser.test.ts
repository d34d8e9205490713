/** A real browser on our port: TLS, ALPN, HTTP/2. */
import { equal, match } from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { selfSigned } from "#h2/testing/peer.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { startEdge } from "#edge/edge.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { Tls } from "#edge/tls/tls-config.ts";

const browser = ["chromium", "chromium-browser", "google-chrome"].find(
  (name) => spawnSync(name, ["--version"]).error === undefined,
);
const certificate = selfSigned();
const skip =
  browser === undefined
    ? "needs chromium: it is not installed"
    : certificate === undefined && "needs openssl: no certificate can be made";

test("Chromium speaks HTTP/2 over TLS with the node", { skip, timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-browser-"));
  const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  writeFileSync(files.certificate, certificate?.cert ?? "");
  writeFileSync(files.key, certificate?.key ?? "");
  const edge = await startEdge({
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse({}),
    tls: Tls.parse(files),
    services: () => new Map(),
    notReady: () => [],
    log: new Log(() => {}, clock),
    h2: { drainMs: 500 },
  });
  try {
    const url = `https://127.0.0.1:${edge.ports[0]}/livez`;
    const page = await shown(browser ?? "", url, folder);
    match(page, /alive/);
    const opened = /millrace_edge_connections_total\{protocol="h2"\} (\d+)/.exec(edge.metrics.text())?.[1];
    equal(Number(opened) > 0, true, "it chose HTTP/2");
  } finally {
    await edge.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** The page as the browser shows it. */
function shown(program: string, url: string, folder: string): Promise<string> {
  const flags = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--ignore-certificate-errors",
  ];
  const quiet = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-proxy-server",
  ];
  const args = [...flags, ...quiet, `--user-data-dir=${join(folder, "profile")}`, "--dump-dom", url];
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
    let text = "";
    child.stdout.on("data", (part: Buffer) => (text += part.toString()));
    child.once("error", reject);
    child.once("close", () => resolve(text));
  });
}
