/** The program of an installed agent: everything that it needs to know is in its folder. */
import { resolve } from "node:path";
import { statOf } from "#worker/process/launcher/proc.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { Agent } from "#doors/deploy/agent/agent.ts";
import { agentLink } from "#doors/deploy/agent/link.ts";
import { machineKey, machineKeyHeader } from "#doors/deploy/agent/machine-key.ts";
import { swarmPlace } from "#doors/deploy/agent/swarm-place.ts";
import { beTheOnlyAgent } from "./one-agent.ts";
import { outbound } from "./outbound.ts";
import { Program } from "./program.ts";
import { readSettings, tokenFileIn } from "./settings.ts";
import { writeStatus } from "./status.ts";

const statusEveryMs = 2_000;

/** Until SIGTERM or SIGINT, or until a new version takes over. Services stay up. */
export async function runInstalled(folder: string): Promise<void> {
  const root = resolve(folder);
  using _ = await beTheOnlyAgent(root);
  const settings = await readSettings(root);
  const { machine: name, region, labels, trusted, server, ca, version } = settings;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const log = (line: string): void => void process.stderr.write(`${new Date().toISOString()} ${line}\n`);
  const machine = { machine: name, region, labels };
  const key = await machineKey(root);
  const out = outbound({ server, ca, tokenFile: tokenFileIn(root) }, () => clock.monotonicMs());
  const link = agentLink(async (path, init) => {
    const headers = { ...(init.headers as Readonly<Record<string, string>>), [machineKeyHeader]: key };
    return await out.fetch(path, { ...init, headers });
  }, machine);
  const manifest = process.env["MILLRACE_MANIFEST"];
  const program = new Program(root, manifest, () => stop.abort());
  const agent = new Agent({ machine, root, link, clock, log, trusted, swarm: swarmPlace(settings), handOver: program });
  const startedAt = new Date(clock.wallMs()).toISOString();
  const startedTicks = statOf(process.pid)?.startedTicks ?? "";
  const telling = async (): Promise<void> => {
    for (; !stop.signal.aborted; await clock.sleep(statusEveryMs, stop.signal).catch(() => undefined)) {
      const answeredMs = out.lastAnswerMs();
      if (answeredMs !== undefined) await program.confirm();
      await writeStatus(root, {
        pid: process.pid,
        startedTicks,
        machine: name,
        region,
        server,
        manifest: manifest ?? null,
        installed: version,
        startedAt,
        writtenAt: new Date(clock.wallMs()).toISOString(),
        answeredAgoMs: answeredMs === undefined ? null : clock.monotonicMs() - answeredMs,
        memoryBytes: process.memoryUsage.rss(),
        services: [...agent.statuses],
      }).catch((error: unknown) => log(`status: ${(error as Error).message}`)); // a full disk ends no agent
    }
  };
  await Promise.all([agent.run(stop.signal), telling()]);
  out.close();
}
