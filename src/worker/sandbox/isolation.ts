/** Tests once, at start, how well commands can be isolated from this machine and from each other. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { Fault } from "#base/fault.ts";
import { dropArguments } from "#worker/process/order.ts";
import { boxArguments } from "./box.ts";

export type Isolation = {
  readonly kind: "bubblewrap" | "plain";
  /** The path of bubblewrap. */
  readonly bwrap: string;
  /** Separate users, one for each lane. */
  readonly uidBase: number | undefined;
  /** Lanes run as root and every command drops to its user; for commands outside the sandbox. */
  readonly drops: boolean;
  /** Whether a command that asks for no network has none. */
  readonly network: "own" | "shared";
  /** What is not available, and why: for the operator. */
  readonly missing: readonly string[];
};

export type IsolationOptions = {
  /** "auto" takes the best that works; the others fail if they are not available. */
  readonly want: "auto" | "bubblewrap" | "plain";
  /** Whether lanes get separate users, if this process is root. */
  readonly users: boolean;
  /** The folder of this node alone. */
  readonly home: string;
};

/** The maximal number of lanes of a node. */
export const uidsOfNode = 20_000;
const nodesApart = 10_000;

/**
 * Far from every range that systems assign, and different for each node, because the same user could reach another
 * node's files and processes. And one range for systems where only the first 65,536 exist.
 */
export function uidBasesOf(home: string): readonly number[] {
  const place = createHash("sha256").update(resolve(home)).digest().readUInt32LE() % nodesApart;
  return [1_835_600_000 + place * uidsOfNode, 50_000];
}

/** Enough to find the sandbox's program; the command does not see it. */
export const sandboxPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Resolved once: a shell would search the path again for every action. */
const bwrap = programAt("bwrap");
const run = promisify(execFile);

export async function probeIsolation({ want, users, home }: IsolationOptions): Promise<Isolation> {
  if (process.platform !== "linux") return nothing(want, "namespaces need Linux");
  const missing: string[] = [];
  const bases = users ? uidBasesOf(home) : [];
  const uidBase = await firstThatWorks(bases, (uid) => tryCommand(["/bin/sh", "-c", ":"], uid));
  if (uidBase === undefined)
    missing.push(isRoot() ? "separate users: not wanted, or refused" : "separate users: needs root");
  if (want !== "plain") {
    const network = await firstThatWorks([false, true], (shared) => tryCommand(trial(shared), uidBase));
    if (network !== undefined) {
      if (network) missing.push("a network namespace: refused here");
      return { kind: "bubblewrap", bwrap, uidBase, drops: false, network: network ? "shared" : "own", missing };
    }
    missing.push(`bubblewrap: ${await complaint(trial(false), uidBase)}`);
    if (want === "bubblewrap") throw new Fault("unavailable", "find sandbox", { why: missing.join("; ") });
  }
  const drops = uidBase !== undefined && (await works([...dropArguments(uidBase), "/bin/sh", "-c", ":"]));
  if (uidBase !== undefined && !drops) missing.push("setpriv: lanes are used once each, which is slower");
  return { kind: "plain", bwrap, uidBase, drops, network: "shared", missing };
}

function nothing(want: IsolationOptions["want"], why: string): Isolation {
  if (want === "bubblewrap") throw new Fault("unavailable", "find sandbox", { why });
  return { kind: "plain", bwrap, uidBase: undefined, drops: false, network: "shared", missing: [`bubblewrap: ${why}`] };
}

function programAt(name: string): string {
  const paths = sandboxPath.split(":").map((folder) => join(folder, name));
  return paths.find(isProgram) ?? name;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** The same arguments that commands are run with. */
const trial = (network: boolean): readonly string[] =>
  boxArguments({
    bwrap,
    root: "/usr",
    workingDirectory: "",
    argv: ["/bin/sh", "-c", ":"],
    env: {},
    network,
    hidden: [],
    unreadable: [],
    scratch: [],
    tmpBytes: 1_000_000,
    shown: [],
    entered: [],
    readOnly: [],
  }).filter((word, at, words) => word !== "--json-status-fd" && words[at - 1] !== "--json-status-fd");

async function tryCommand(words: readonly string[], uid: number | undefined): Promise<boolean> {
  return (await complaint(words, uid)) === undefined;
}

const works = (words: readonly string[]): Promise<boolean> => tryCommand(words, undefined);

async function complaint(
  [program = "", ...args]: readonly string[],
  uid: number | undefined,
): Promise<string | undefined> {
  const user = uid === undefined ? {} : { uid, gid: uid };
  try {
    await run(program, args, {
      ...user,
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
      timeout: 20_000,
    });
    return undefined;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    return code === "ENOENT" ? "not installed" : stderr?.trim().split("\n")[0] || String(error);
  }
}

async function firstThatWorks<T>(
  candidates: readonly T[],
  isGood: (one: T) => Promise<boolean>,
): Promise<T | undefined> {
  for (const candidate of candidates) if (await isGood(candidate)) return candidate;
  return undefined;
}
