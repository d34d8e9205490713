/**
 * Sets an agent up on this machine. May be run again at any time: what is there is replaced, the machine's key and what
 * it runs stay.
 */
import { spawn, spawnSync } from "node:child_process";
import { chmod, copyFile, link, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { isAlive, statOf } from "#worker/process/launcher/proc.ts";
import { readIfThere, writeDurably } from "#doors/deploy/agent/durable-files.ts";
import { machineKey } from "#doors/deploy/agent/machine-key.ts";
import { Program, programFolder } from "./program.ts";
import { tokenFileIn, writeSettings, type Settings } from "./settings.ts";
import { readStatus, type AgentStatus } from "./status.ts";
import { supervisorScript, systemdUnit } from "./supervisor.ts";

export type Installation = {
  readonly root: string;
  readonly settings: Settings;
  readonly token: string;
  /** The agent as one file, and the Node that runs it: both are copied. */
  readonly program: string;
  readonly node: string;
};

const unitPath = "/etc/systemd/system/millrace-agent.service";
/** Little is kept of the young, since an agent makes little; 64 MB is far above what it holds. */
const nodeFlags = ["--max-semi-space-size=1", "--max-old-space-size=64"];

export type Supervision = "systemd" | "its own supervisor";

export async function install({ root, settings, token, program, node }: Installation): Promise<Supervision> {
  const folder = programFolder(root);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await stopSupervisor(root);
  await machineKey(root);
  await writeSettings(root, settings);
  await writeDurably(tokenFileIn(root), token);
  await place(program, join(folder, "agent.cjs"));
  await place(node, join(folder, "node"));
  await writeDurably(join(folder, "supervise.sh"), supervisorScript);
  await Program.install(root, [join(folder, "node"), ...nodeFlags, join(folder, "agent.cjs")]);
  if (await hasSystemd()) {
    await writeDurably(unitPath, systemdUnit(folder));
    await chmod(unitPath, 0o644);
    for (const words of [["daemon-reload"], ["enable", "millrace-agent"], ["restart", "millrace-agent"]])
      systemctl(words);
    return "systemd";
  }
  await startSupervisor(root);
  return "its own supervisor";
}

/** Waits until the agent runs and a node has answered it; undefined when it takes too long. */
export async function firstAnswer(
  root: string,
  { limitMs, pause }: { readonly limitMs: number; readonly pause: () => Promise<void> },
): Promise<AgentStatus | undefined> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < limitMs) {
    const status = await readStatus(root);
    if (status?.isRunning === true && status.answeredAgoMs !== null) return status;
    await pause();
  }
  return undefined;
}

/** The agent goes, and with it what keeps it running; its services stay up. */
export async function stopSupervisor(root: string): Promise<void> {
  const text = await readIfThere(supervisorFile(root));
  if (text !== undefined) {
    const { pid, startedTicks } = JSON.parse(text) as { readonly pid: number; readonly startedTicks: string };
    if (isAlive(pid) && statOf(pid)?.startedTicks === startedTicks) {
      process.kill(pid, "SIGTERM");
      for (let waited = 0; isAlive(pid) && waited < 100; waited += 1)
        await new Promise((done) => setTimeout(done, 100));
    }
    await rm(supervisorFile(root), { force: true });
  }
}

async function startSupervisor(root: string): Promise<void> {
  const folder = programFolder(root);
  const log = await open(join(root, "agent.log"), "a", 0o600);
  const child = spawn("/bin/sh", [join(folder, "supervise.sh")], {
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
  });
  child.unref();
  await log.close();
  const { pid = 0 } = child;
  await writeDurably(supervisorFile(root), JSON.stringify({ pid, startedTicks: statOf(pid)?.startedTicks ?? "" }));
}

const supervisorFile = (root: string): string => join(programFolder(root), "supervisor.json");

/** A hard link where that can be: a copy of Node takes 120 MB. What runs keeps the file that it was started from. */
async function place(from: string, to: string): Promise<void> {
  const aside = `${to}.new`;
  await rm(aside, { force: true });
  if (to.endsWith(".cjs")) await copyFile(from, aside);
  else await link(from, aside).catch(async () => await copyFile(from, aside));
  await rename(aside, to);
}

const hasSystemd = async (): Promise<boolean> =>
  process.getuid?.() === 0 && (await stat("/run/systemd/system").catch(ignoreMissing)) !== undefined;

function systemctl(words: readonly string[]): void {
  const { status, stderr } = spawnSync("systemctl", words, { encoding: "utf8", timeout: 30_000 });
  if (status !== 0)
    throw new Fault("internal", "install agent", { command: `systemctl ${words.join(" ")}`, why: stderr });
}

/** Without the line break that an editor leaves behind it. */
export const readToken = async (file: string): Promise<string> => (await readFile(file, "utf8")).trim();
