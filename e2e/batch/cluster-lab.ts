/** Nodes that share a PostgreSQL server and a bucket, and run queries together. */
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LittleS3, littleCredentials } from "#blobs/tiers/testing/little-s3.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";

export class QueryCluster implements AsyncDisposable {
  readonly s3: LittleS3;
  readonly nodes: readonly NodeProcess[];

  private constructor(s3: LittleS3, nodes: readonly NodeProcess[]) {
    this.s3 = s3;
    this.nodes = nodes;
  }

  static async open(
    folder: string,
    url: string,
    names: readonly string[],
    more: (s3: LittleS3) => object = () => ({}),
  ): Promise<QueryCluster> {
    const s3 = await LittleS3.start();
    process.env["AWS_ACCESS_KEY_ID"] = littleCredentials.accessKeyId;
    process.env["AWS_SECRET_ACCESS_KEY"] = littleCredentials.secretAccessKey;
    mkdirSync(folder, { recursive: true });
    const secretFile = join(folder, "cluster.secret");
    writeFileSync(secretFile, `${randomBytes(16).toString("hex")}\n`, { mode: 0o600 });
    const keyFile = join(folder, "vault.key");
    writeFileSync(keyFile, `lab ${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
    const seed = `127.0.0.1:${await freePort()}`;
    const nodes: NodeProcess[] = [];
    for (const [i, name] of names.entries()) {
      const listen = i === 0 ? seed : `127.0.0.1:${await freePort()}`;
      const authoritative = { kind: "s3", endpoint: s3.endpoint, region: "here", bucket: "mill", peers: {} };
      nodes.push(
        await NodeProcess.open(join(folder, name), {
          node: { name, listen: ["tcp:127.0.0.1:0"] },
          cluster: { shards: 1, secretFile },
          journal: { kind: "postgres", url },
          vault: { keyFile },
          mesh: { listen, join: [seed], profile: "local" },
          blobs: { kind: "disk", authoritative },
          worker: { slots: 2 },
          ...more(s3),
        }),
      );
    }
    const cluster = new QueryCluster(s3, nodes);
    await until("the nodes see each other", () => cluster.#areMet(), { limitMs: 60_000, everyMs: 100 });
    return cluster;
  }

  get first(): NodeProcess {
    const [node] = this.nodes;
    if (!node) throw new Error("a cluster without nodes");
    return node;
  }

  async #areMet(): Promise<boolean> {
    for (const node of this.nodes) {
      const answer = await fetch(`http://${node.address}/peers`, { headers: node.headers });
      const { peers } = (await answer.json()) as { readonly peers: readonly { readonly state: string }[] };
      if (peers.filter(({ state }) => state === "alive").length < this.nodes.length - 1) return false;
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
    await this.s3[Symbol.asyncDispose]();
  }
}
