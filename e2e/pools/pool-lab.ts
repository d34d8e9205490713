/** For tests: a node with a pool of pods on a Kubernetes double, whose Role is the one that is shipped. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { showPool } from "#api/pools.ts";
import { whyRun } from "#doors/ci/why/endpoints.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { KubernetesDouble, type Rule } from "#testing/kubernetes/api-double.ts";
import { NodesDouble, type NodesOptions, type RunningPod } from "#testing/kubernetes/nodes-double.ts";
import type { PodObject } from "#testing/kubernetes/objects.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");
const rbac = join(import.meta.dirname, "../../deploy/kubernetes/runners/rbac.yaml");
const token = "kubernetes-token-of-the-node";
export const image = "runner:1";

export function shippedRules(): readonly Rule[] {
  const role = parseAllDocuments(readFileSync(rbac, "utf8"))
    .map((document) => document.toJS() as { readonly kind: string; readonly rules?: readonly Rule[] })
    .find(({ kind }) => kind === "Role");
  return role?.rules ?? [];
}

export type LabOptions = {
  readonly pool?: object;
  readonly template?: object;
  /** Besides the one that works. */
  readonly templates?: readonly object[];
  readonly nodes?: Partial<NodesOptions>;
  readonly config?: object;
};

export class PoolLab implements AsyncDisposable {
  readonly folder: string;
  readonly api: KubernetesDouble;
  readonly nodes: NodesDouble;
  readonly node: NodeProcess;
  readonly ci: CiNode;
  /** What the runners said, by pod. */
  readonly said = new Map<string, string>();

  private constructor(parts: Pick<PoolLab, "folder" | "api" | "node">, nodes: Partial<NodesOptions>) {
    this.folder = parts.folder;
    this.api = parts.api;
    this.node = parts.node;
    this.ci = new CiNode(`http://${this.node.address}`, () => readOwnerToken(dataFolder(this.folder)) ?? "");
    const run = (pod: PodObject, secret: string): RunningPod => this.#runner(pod, secret);
    this.nodes = new NodesDouble({ api: this.api, images: new Set([image]), run, ...nodes });
  }

  static async open({
    pool = {},
    template = {},
    templates = [],
    nodes = {},
    config = {},
  }: LabOptions = {}): Promise<PoolLab> {
    const folder = mkdtempSync(join(tmpdir(), "millrace-pools-"));
    const namespace = "millrace-runners";
    const api = new KubernetesDouble({ namespace, token, rules: shippedRules() });
    const url = await api.listen();
    const tokenFile = join(folder, "kubernetes-token");
    writeFileSync(tokenFile, `${token}\n`);
    const address = { api: url, tokenFile };
    const settings = {
      name: "linux",
      kind: "kubernetes",
      ...address,
      max: 4,
      idle: "5s",
      ...pool,
      templates: [{ runsOn: ["podded"], image, ...template }, ...templates],
    };
    // The node itself plans and runs no job of these: its labels do not fit.
    const node = await NodeProcess.open(folder, {
      worker: { slots: 2 },
      ci: { labels: ["near"] },
      pools: [{ server: "http://placeholder", ...settings }],
      ...config,
    });
    return new PoolLab({ folder, api, node }, nodes);
  }

  pool(name = "linux") {
    return callEndpoint(this.ci.fetch, showPool, { params: { pool: name } });
  }

  /** What `millrace why` says of the run. */
  async why(run: string): Promise<string> {
    return (await callEndpoint(this.ci.fetch, whyRun, { params: { run } })).lines.join("\n");
  }

  #runner({ metadata: { name, uid }, spec }: PodObject, secret: string): RunningPod {
    const home = mkdtempSync(join(tmpdir(), "millrace-pod-"));
    const file = join(home, "token");
    writeFileSync(file, secret);
    const args = (spec.containers[0]?.args ?? []).map((word) =>
      word
        .replace(/^\/run\/millrace\/token$/, file)
        .replace(/^\/work\//, `${home}/`)
        .replace("http://placeholder", `http://${this.node.address}`),
    );
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part) => this.said.set(uid, `${this.said.get(uid) ?? name}\n${String(part)}`));
    const { promise, resolve } = Promise.withResolvers<number>();
    child.once("close", (code) => {
      clearAway(home);
      resolve(code ?? 137);
    });
    return { ended: promise, kill: (signal) => void child.kill(signal) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node[Symbol.asyncDispose]();
    await this.nodes[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
    clearAway(this.folder);
  }
}
