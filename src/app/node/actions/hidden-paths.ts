/** What actions must not see, although they see the rest of the machine: this node's data and its secrets. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { sectionOf, serversOf, type Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";
import type { Door } from "#door/door.ts";
import type { TierConfig } from "#app/config/tier-config.ts";

/** Certificates and public keys are not secret. */
export function hiddenPaths(
  config: Config,
  folder: DataFolder,
  { configFile, doors }: { readonly configFile?: string | undefined; readonly doors: readonly Door[] },
): readonly string[] {
  const { cluster, edge, mesh, journal, blobs, traces, node, pools } = config;
  const found = [
    folder.path,
    configFile,
    // A caller that connects to it is the operator.
    ...node.listen.flatMap((address) => (address.startsWith("unix:") ? [address.slice("unix:".length)] : [])),
    cluster.secretFile,
    edge.tls?.key,
    ...edge.identity.tokens.map(({ file }) => file),
    mesh?.keysFile,
    traces?.token,
    ...pools.flatMap((pool) => (pool.kind === "kubernetes" ? [pool.tokenFile] : [])),
    ...(journal.kind === "sqlite" ? [journal.directory] : []),
    ...(journal.kind === "postgres" ? serversOf(journal).flatMap(({ url }) => postgresFiles(url)) : []),
    ...(blobs.kind === "memory" ? [] : [blobs.directory]),
    ...(blobs.kind === "disk" && blobs.authoritative ? tierPaths(blobs.authoritative) : []),
    ...doors.flatMap((door) => door.hides?.(sectionOf(config, door)) ?? []),
  ];
  return [...new Set(found.flatMap((path) => (path === undefined ? [] : [resolve(path)])))];
}

function tierPaths(tier: TierConfig): readonly (string | undefined)[] {
  const { names, shortCuts, peers } = tier;
  return [
    ...(tier.kind === "s3" ? [tier.credentials] : []),
    ...(tier.kind === "reapi" ? [tier.token, tier.tokens] : []),
    ...(tier.kind === "directory" ? [tier.directory] : []),
    ...shortCuts.map(({ token }) => token),
    peers?.token,
    ...(names.kind === "postgres" ? postgresFiles(names.url) : []),
  ];
}

/** The driver also reads passwords and keys from files. */
function postgresFiles(url: string): readonly (string | undefined)[] {
  const key = URL.canParse(url) ? new URL(url).searchParams.get("sslkey") : null;
  return [key ?? undefined, process.env["PGPASSFILE"] || join(homedir(), ".pgpass")];
}
