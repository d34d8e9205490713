/** Peers from PyPI, where `$PEER_PYTHON` (python3) has them. They run the same SQL over the same files, once. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Used } from "./bench-node.ts";
import type { Workload } from "./workloads.ts";

export type Peer = { readonly name: string; run(workload: Workload, folder: string): Used | undefined };

const packages = { PySpark: "pyspark", Polars: "polars" } as const;
const limitMs = 600_000;

export function openPeers(): readonly Peer[] {
  const python = process.env["PEER_PYTHON"] ?? "python3";
  return Object.entries(packages)
    .filter(([, name]) => spawnSync(python, ["-c", `import ${name}`]).status === 0)
    .map(([name]) => ({
      name,
      run({ queries }, folder) {
        const { status, stdout } = spawnSync(python, [join(import.meta.dirname, "peers.py"), name, folder], {
          input: JSON.stringify({ queries }),
          encoding: "utf8",
          timeout: limitMs,
          stdio: ["pipe", "pipe", "ignore"],
        });
        // Not every query is in every dialect.
        return status === 0 ? (JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Used) : undefined;
      },
    }));
}
