/** Libraries to compare with: installed on request, into a cache outside the repository, at pinned versions. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const versions = {
  "graphile-worker": "0.18.0",
  "pg-boss": "12.35.0",
  bullmq: "6.7.0",
  ioredis: "6.0.0",
  "@bufbuild/protobuf": "2.17.0",
  pbf: "5.1.2",
  "protocol-buffers-schema": "3.6.1",
} as const;

export type PeerPackage = keyof typeof versions;

const cache = join(tmpdir(), "millrace-bench-peers");

/** Undefined when all of them are there; otherwise why not. */
export function installPeers(names: readonly PeerPackage[]): string | undefined {
  if (names.every(isInstalled)) return undefined;
  mkdirSync(cache, { recursive: true });
  const manifest = join(cache, "package.json");
  if (!existsSync(manifest)) writeFileSync(manifest, `{ "private": true }\n`);
  const wanted = names.map((name) => `${name}@${versions[name]}`);
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const { status, stderr, error } = spawnSync("npm", ["install", "--prefix", cache, ...flags, ...wanted], {
    encoding: "utf8",
    timeout: 180_000,
  });
  if (status === 0) return undefined;
  return `npm install failed: ${(error?.message ?? stderr).trim().split("\n").at(-1) ?? ""}`;
}

function isInstalled(name: PeerPackage): boolean {
  try {
    const manifest = readFileSync(join(cache, "node_modules", name, "package.json"), "utf8");
    return (JSON.parse(manifest) as { version: string }).version === versions[name];
  } catch {
    return false;
  }
}

/** The library itself. Its types are missing here: it is not a dependency of ours. */
export async function loadPeer<T>(name: PeerPackage, part = ""): Promise<T> {
  const require = createRequire(join(cache, "package.json"));
  return (await import(pathToFileURL(require.resolve(`${name}${part}`)).href)) as T;
}

/** Where a program is, or undefined. */
export function findProgram(name: string): string | undefined {
  try {
    return execFileSync("which", [name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
