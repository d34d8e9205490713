import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { NodeHttp, World } from "#door/command.ts";
import { Agent } from "#doors/deploy/agent/agent.ts";
import { agentLink } from "#doors/deploy/agent/link.ts";
import { systemClock } from "#door/system-clock.ts";

export type AgentOptions = {
  readonly region: string;
  readonly machine: string | undefined;
  readonly labels: readonly string[];
  readonly root: string | undefined;
  readonly trust: readonly string[] | undefined;
};

/** Until SIGTERM or SIGINT. The services that it started stay up. */
export async function runAgent(options: AgentOptions, http: NodeHttp, { note }: Pick<World, "note">): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const { region, labels, machine: name = hostname(), root = "millrace-agent", trust } = options;
  const machine = { machine: name, region, labels };
  const link = agentLink((path, init) => http.reach(path, init), machine);
  const trusted = trust && (await Promise.all(trust.map((file) => readFile(file, "utf8"))));
  await new Agent({ machine, root: resolve(root), link, clock: systemClock, log: note, trusted }).run(stop.signal);
}
