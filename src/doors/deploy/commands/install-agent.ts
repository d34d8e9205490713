import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { Fault } from "#base/fault.ts";
import type { World } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { firstAnswer, install, readToken, stopSupervisor } from "#doors/deploy/agent/installed/install.ts";
import { readStatus } from "#doors/deploy/agent/installed/status.ts";
import { swarmPlace } from "#doors/deploy/agent/swarm-place.ts";
import { Region } from "#doors/deploy/service/service-file.ts";

type Words = {
  readonly join: string;
  readonly region: string;
  readonly tokenFile: string;
  readonly labels: readonly string[];
  readonly trust: readonly string[];
  readonly ca?: string;
  readonly machine?: string;
  readonly rack?: string;
  readonly peer?: string;
  readonly upload?: string;
  readonly root?: string;
  readonly json?: boolean;
};

const packageFolder = join(import.meta.dirname, "../../../..");
const answerMsMax = 30_000;

export async function installAgent(words: Words, world: World): Promise<0 | 1> {
  const { join: server, region, tokenFile, labels, trust, ca, machine = hostname(), rack, peer, upload } = words;
  const program = join(packageFolder, "dist", "agent", "agent.cjs");
  if (!existsSync(program)) throw new Fault("not-found", "install agent", { program, try: "npm run prepare" });
  if (!Region.safeParse(region).success) throw new Fault("invalid", "install agent", { region });
  const place = {
    ...(rack !== undefined && { rack }),
    ...(peer !== undefined && { peer }),
    ...(upload !== undefined && { upload }),
  };
  swarmPlace(place); // a wrong word is told now
  const { version } = JSON.parse(await readFile(join(packageFolder, "package.json"), "utf8")) as { version: string };
  const root = rootOf(words);
  const settings = {
    server: new URL(server).href.replace(/\/$/, ""),
    ...(ca !== undefined && { ca: await readFile(ca, "utf8") }),
    machine,
    region,
    labels: [...labels],
    ...place,
    ...(trust.length > 0 && { trusted: await Promise.all(trust.map((file) => readFile(file, "utf8"))) }),
    version,
  };
  const by = await install({ root, settings, token: await readToken(tokenFile), program, node: process.execPath });
  const answered = await firstAnswer(root, { limitMs: answerMsMax, pause: () => clock.sleep(200) });
  const isUp = answered !== undefined;
  if (words.json) world.out(JSON.stringify({ kind: "installed", root, machine, region, by, isUp }));
  else world.out(`${machine} in ${region}: installed in ${root}, kept running by ${by}`);
  if (!isUp)
    world.note(`no node has answered yet; look at ${join(root, "agent.log")} (systemd: journalctl -u millrace-agent)`);
  return isUp ? 0 : 1;
}

export async function showAgent(
  values: { readonly root?: string; readonly json?: boolean },
  world: World,
): Promise<0 | 1> {
  const root = rootOf(values);
  const status = await readStatus(root);
  if (!status) {
    world.note(`no agent has run in ${root}`);
    return 1;
  }
  const { answeredAgoMs, writtenAt, isRunning } = status;
  const sinceMs = answeredAgoMs === null ? null : answeredAgoMs + clock.wallMs() - Date.parse(writtenAt);
  const isWell = isRunning && sinceMs !== null && sinceMs < answerMsMax;
  if (values.json) world.out(JSON.stringify({ ...status, isWell }));
  else {
    world.out(`machine  ${status.machine} in ${status.region}`);
    world.out(
      `agent    ${isRunning ? `runs since ${status.startedAt}, pid ${status.pid}` : `does not run; last seen ${writtenAt}`}`,
    );
    world.out(`version  ${status.manifest?.slice(0, 12) ?? `${status.installed}, as installed`}`);
    world.out(
      `node     ${status.server}, ${sinceMs === null ? "no answer yet" : `answered ${Math.round(sinceMs / 1_000)} s ago`}`,
    );
    world.out(`memory   ${mebibytes(status.memoryBytes)}, disk free ${mebibytes(status.freeBytes)}`);
    const rows = status.services.map((one) => [
      one.service,
      one.state,
      one.running?.slice(0, 12) ?? "nothing",
      one.why,
    ]);
    if (rows.length > 0) for (const line of tableLines(["SERVICE", "STATE", "RUNS", "WHY"], rows)) world.out(line);
  }
  return isWell ? 0 : 1;
}

export async function stopAgent(values: { readonly root?: string }): Promise<string> {
  const root = rootOf(values);
  await stopSupervisor(root);
  return root;
}

const rootOf = ({ root }: { readonly root?: string }): string =>
  resolve(root ?? (process.getuid?.() === 0 ? "/var/lib/millrace-agent" : "millrace-agent"));

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;
