import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import type { NodeHttp, World } from "#door/command.ts";
import { Size } from "#base/config-words.ts";
import { Agent, type SwarmPlace } from "#doors/deploy/agent/agent.ts";
import { readIfThere, writeDurably } from "#doors/deploy/agent/durable-files.ts";
import { machineKeyHeader } from "#doors/deploy/fleet/machine-book.ts";
import { agentLink } from "#doors/deploy/agent/link.ts";
import { systemClock } from "#door/system-clock.ts";

export type AgentOptions = {
  readonly region: string;
  readonly machine: string | undefined;
  readonly labels: readonly string[];
  readonly root: string | undefined;
  readonly trust: readonly string[] | undefined;
  readonly rack: string | undefined;
  readonly peer: string | undefined;
  readonly upload: string | undefined;
};

/** Until SIGTERM or SIGINT. The services that it started stay up. */
export async function runAgent(
  options: AgentOptions,
  http: NodeHttp,
  { note, disturb }: Pick<World, "note"> & Pick<SwarmPlace, "disturb">,
): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const { region, labels, machine: name = hostname(), root = "millrace-agent", trust } = options;
  const machine = { machine: name, region, labels };
  const key = await machineKey(resolve(root));
  const link = agentLink(
    (path, init) => http.reach(path, { ...init, headers: { ...headersOf(init), [machineKeyHeader]: key } }),
    machine,
  );
  const trusted = trust && (await Promise.all(trust.map((file) => readFile(file, "utf8"))));
  const place = swarmPlace(options);
  const swarm = place && { ...place, disturb };
  const agent = new Agent({ machine, root: resolve(root), link, clock: systemClock, log: note, trusted, swarm });
  await agent.run(stop.signal);
}

const headersOf = ({ headers }: RequestInit): Readonly<Record<string, string>> =>
  Object.fromEntries(new Headers(headers));

/** Made at the first start: the machine's name belongs to it from its first call on. */
async function machineKey(root: string): Promise<string> {
  const path = join(root, "machine-key");
  const kept = await readIfThere(path);
  if (kept !== undefined) return kept;
  await mkdir(root, { recursive: true, mode: 0o700 });
  const key = randomBytes(32).toString("base64url");
  await writeDurably(path, key);
  await chmod(path, 0o600);
  return key;
}

function swarmPlace({ peer, rack = "", upload }: AgentOptions): SwarmPlace | undefined {
  if (peer === "none") return undefined;
  const [, host, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(peer ?? "127.0.0.1") ?? [];
  const rate = upload === undefined ? Infinity : Size().parse(upload);
  const caps = { host: rate, rack: Infinity, wan: Infinity };
  return { rack, host: host ?? "127.0.0.1", port: Number(port ?? 0), caps };
}
