/** A node as it is installed, with a store on disk and tokens, for third-party clients. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";

export type Caches = AsyncDisposable & {
  readonly url: string;
  readonly token: string;
  readonly readOnlyToken: string;
};

const token = "writer-token-0123456789-0123456789";
const readOnlyToken = "reader-token-0123456789-0123456789";

const tokens = [
  { name: "ci", tenant: "mill", roles: ["action-cache-writer"], sha256: tokenSha256(token) },
  { name: "laptop", tenant: "mill", roles: ["cache-reader"], sha256: tokenSha256(readOnlyToken) },
];

/**
 * `blobs` as in the configuration; left out: a disk without a tier. `identity` also as in the configuration, for
 * clients without a token: without any, every program on this machine may do everything.
 */
export async function startCaches(blobs: object = { kind: "disk" }, identity: object = { tokens }): Promise<Caches> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-caches-"));
  const config = Config.parse({
    cluster: { shards: 1 },
    worker: { enabled: false },
    blobs,
    edge: { listen: ["127.0.0.1:0"], identity },
  });
  const node = await startNode(config, dataFolder(folder), { log: () => {} });
  return {
    url: `http://${node.edgeAddresses[0]}`,
    token,
    readOnlyToken,
    async [Symbol.asyncDispose]() {
      await node.stop();
      await rm(folder, { recursive: true });
    },
  };
}
