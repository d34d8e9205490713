/** A node with many held TLS streams: what each costs, how soon a goal reaches all, and a halt almost all. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { clearAway } from "#testing/clear-away.ts";
import { endChild } from "#testing/end-child.ts";
import { freePort } from "#testing/free-port.ts";
import { until } from "#testing/until.ts";
import type { Report } from "#bench/report.ts";
import { Crowd } from "./crowd.ts";
import { quantile } from "./quantile.ts";
import { commitOf, releaseBody } from "./service.ts";

const main = join(import.meta.dirname, "../../src/cli/main.ts");
const rounds = 3;

export async function heldAgents(report: Report, agents: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-held-"));
  try {
    await using node = await TlsNode.start(folder);
    const [memory, cpu] = [node.memoryMb(), node.cpuSeconds()];
    const crowdOf = { count: agents, services: 1, attachAtOnce: 20, follows: true };
    await using crowd = new Crowd({ url: node.url, token: node.token, caFile: node.certificate, ...crowdOf });
    const { attached, failed } = await crowd.attached(600_000);
    if (failed > 0) throw new Error(`${failed} of ${agents} agents could not attach`);
    const attaching = { memory: node.memoryMb() - memory, cpu: node.cpuSeconds() - cpu };
    await release(node, folder);
    const [pushes, halts] = [await spread(node, crowd, agents), await spread(node, crowd, agents)];
    const rows = [
      ["held TLS streams", attached],
      ["memory of the node for each, KB", ((attaching.memory * 1_000) / attached).toFixed(1)],
      ["CPU for attaching each, ms", ((attaching.cpu * 1_000) / attached).toFixed(2)],
      ["CPU for pushing a goal to each, us", ((pushes.cpu * 1e6) / attached / (2 * rounds)).toFixed(0)],
      ["a goal reaches 99 %, ms", quantile(pushes.times, 0.99)],
      ["a halt reaches 99.9 %, ms", quantile(halts.times, 0.999)],
    ] as const;
    report.table(`A node with ${agents} agents`, ["", ""], rows);
    report.figure("push_p99_ms", quantile(pushes.times, 0.99));
    report.target({
      what: "a halt reaches 99.9 % of the agents, s",
      atMost: 10,
      got: quantile(halts.times, 0.999) / 1_000,
    });
  } finally {
    clearAway(folder);
  }
}

/** Halts and lets go on; how long each of these goals took to each agent. */
async function spread(node: TlsNode, crowd: Crowd, agents: number) {
  const times: number[] = [];
  const cpu = node.cpuSeconds();
  for (let round = 0; round < rounds; round += 1)
    for (const halted of [true, false]) {
      const next = (await node.version()) + 1;
      const sentMs = Date.now();
      await node.call("POST", "/v1/deploy/services/web/halt", { regions: ["eu"], halted });
      const heard = crowd.heard("web", next);
      await until("all have heard", () => heard.length >= agents, { limitMs: 120_000, everyMs: 20 });
      times.push(...heard.map((atMs) => atMs - sentMs));
    }
  return { times: times.toSorted((a, b) => a - b), cpu: node.cpuSeconds() - cpu };
}

async function release(node: TlsNode, folder: string): Promise<void> {
  const repository = join(folder, "repository");
  const body = releaseBody("web", repository, commitOf(repository), ["svc=s0"]);
  const { job } = (await node.call("POST", "/v1/deploy/releases", body)) as { job: string };
  const phase = async (): Promise<string> => ((await node.call("GET", `/v1/jobs/${job}`)) as { phase: string }).phase;
  await until("the release has ended", async () => /^(SUCC|FAIL|CANCELLED)/.test(await phase()), { limitMs: 300_000 });
  if ((await phase()) !== "SUCCEEDED") throw new Error(`the release ended ${await phase()}`);
}

class TlsNode implements AsyncDisposable {
  readonly url: string;
  readonly certificate: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(folder: string, url: string, certificate: string, child: ChildProcess) {
    this.url = url;
    this.certificate = certificate;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(folder: string): Promise<TlsNode> {
    const data = join(folder, "node");
    mkdirSync(data);
    const [certificate, key] = [join(folder, "node.pem"), join(folder, "node.key")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
    const keys = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    execFileSync("openssl", ["req", "-x509", ...keys, "-keyout", key, "-out", certificate, ...subject], {
      stdio: "pipe",
    });
    const address = `127.0.0.1:${await freePort()}`;
    const config = { worker: { slots: 2 }, edge: { listen: [address], tls: { certificate, key } } };
    writeFileSync(join(data, "config.yaml"), JSON.stringify(config));
    const child = spawn(process.execPath, ["--max-semi-space-size=64", main, "up", "--data", data], {
      stdio: "ignore",
    });
    const node = new TlsNode(data, `https://${address}`, certificate, child);
    const isReady = async (): Promise<boolean> =>
      await node.call("GET", "/readyz").then(
        () => true,
        () => false,
      );
    await until("the node is up", isReady, { limitMs: 60_000, everyMs: 100 });
    return node;
  }

  get token(): string {
    return readOwnerToken(dataFolder(this.#folder)) ?? "";
  }

  async call(method: string, path: string, body?: object): Promise<unknown> {
    const headers = { authorization: `Bearer ${this.token}`, ...(body && { "content-type": "application/json" }) };
    const answer = Promise.withResolvers<unknown>();
    const ca = readFileSync(this.certificate);
    const sent = request(new URL(path, this.url), { method, headers, ca }, (incoming) => {
      const parts: Buffer[] = [];
      incoming.on("data", (part: Buffer) => parts.push(part));
      incoming.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        const { statusCode = 0 } = incoming;
        if (statusCode >= 300) answer.reject(new Error(`${method} ${path}: ${statusCode} ${text}`));
        else answer.resolve(text.startsWith("{") ? (JSON.parse(text) as unknown) : undefined);
      });
    });
    sent.on("error", answer.reject);
    sent.end(body && JSON.stringify(body));
    return await answer.promise;
  }

  async version(): Promise<number> {
    const shown = await this.call("GET", "/v1/deploy/services/web?regions=eu");
    return (shown as { regions: { version: number }[] }).regions[0]?.version ?? 0;
  }

  memoryMb(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    return (Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024) / 1e6;
  }

  cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endChild(this.#child, "SIGKILL");
  }
}
