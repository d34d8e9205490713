// A real S3-compatible server for tests: OpenStack Swift with its S3 interface, from Debian. Typical use:
//
//   const swift = await startSwift();
//   test("…", { skip: swift.skip }, async () => { … swift.server().endpoint … });
//   after(() => swift.stop());
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

export type SwiftServer = {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
};

export type StartedSwift = {
  /** False, or why there is no server: pass it on as the `skip` of every test that needs one. */
  readonly skip: false | string;
  server(): SwiftServer;
  stop(): void;
};

const packages = "swift-proxy, swift-account, swift-container and swift-object (Debian)";
const roles = ["account", "container", "object"] as const;

export async function startSwift(): Promise<StartedSwift> {
  const programs = ["swift-ring-builder", "swift-proxy-server", ...roles.map((role) => `swift-${role}-server`)];
  const missing = programs.find((program) => spawnSync("which", [program]).status !== 0);
  if (missing !== undefined) return absent(`install ${packages}: there is no ${missing}`);
  if (process.getuid?.() !== 0)
    return absent("it keeps what it knows of objects in attributes that only root may write");
  const folder = mkdtempSync(join(tmpdir(), "millrace-swift-"));
  const children: ChildProcess[] = [];
  const stop = (): void => {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const port = await launch(folder, children);
    const server: SwiftServer = {
      endpoint: `http://127.0.0.1:${port}`,
      region: "here",
      credentials: { accessKeyId: "mill:race", secretAccessKey: "a/secret+0" },
    };
    return { skip: false, server: () => server, stop };
  } catch (error) {
    stop();
    return absent((error as Error).message);
  }
}

function absent(why: string): StartedSwift {
  const skip = `needs swift: ${why}`;
  const server = (): never => {
    throw new Error(skip);
  };
  return { skip, server, stop: () => {} };
}

/** One of each server, all on one folder: Swift's "all in one". */
async function launch(folder: string, children: ChildProcess[]): Promise<number> {
  mkdirSync(join(folder, "devices", "d1"), { recursive: true });
  const start = (program: string, config: string): void => {
    children.push(spawn(program, [config], { cwd: folder, stdio: "ignore" }));
  };
  for (const role of roles) {
    const port = await freePort();
    writeFileSync(join(folder, `${role}.conf`), serverConfig(folder, role, port));
    for (const args of [["create", "4", "1", "1"], ["add", `r1z1-127.0.0.1:${port}/d1`, "1"], ["rebalance"]]) {
      const { status, stdout } = spawnSync("swift-ring-builder", [`${role}.builder`, ...args], { cwd: folder });
      if (status !== 0) throw new Error(`swift-ring-builder ${args[0]}: ${String(stdout)}`);
    }
    start(`swift-${role}-server`, `${role}.conf`);
    await answering(port);
  }
  const port = await freePort();
  writeFileSync(join(folder, "proxy.conf"), proxyConfig(folder, port));
  start("swift-proxy-server", "proxy.conf");
  await answering(port);
  return port;
}

const answering = (port: number): Promise<void> => {
  const isThere = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  return until(`Swift answers on port ${port}`, isThere, { limitMs: 60_000, everyMs: 100 });
};

const common = (folder: string, port: number): string =>
  `[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = ${port}\nuser = root\nworkers = 0\nswift_dir = ${folder}\n`;

const serverConfig = (folder: string, role: string, port: number): string =>
  `${common(folder, port)}devices = ${join(folder, "devices")}\nmount_check = false\nrecon_cache_path = ${folder}\n` +
  `[pipeline:main]\npipeline = ${role}-server\n[app:${role}-server]\nuse = egg:swift#${role}\n`;

function proxyConfig(folder: string, port: number): string {
  const filters: readonly (readonly [string, string, string])[] = [
    ["catch_errors", "catch_errors", ""],
    ["gatekeeper", "gatekeeper", ""],
    ["cache", "memcache", "memcache_servers = 127.0.0.1:1"], // it requires a configured cache server, not a running one
    ["s3api", "s3api", "location = here"],
    ["tempauth", "tempauth", "user_mill_race = a/secret+0 .admin"],
    ["bulk", "bulk", ""],
    ["slo", "slo", ""],
    ["dlo", "dlo", ""],
  ];
  const pipeline = [...filters.map(([name]) => name), "proxy-server"].join(" ");
  const sections = filters.map(([name, use, more]) => `[filter:${name}]\nuse = egg:swift#${use}\n${more}\n`).join("");
  const app = "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n";
  return `${common(folder, port)}[pipeline:main]\npipeline = ${pipeline}\n${sections}${app}`;
}
