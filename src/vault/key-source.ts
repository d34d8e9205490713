/** Where key-encryption keys come from: a file, a variable, a command, or a file that the node made for itself. */
import { execFile } from "node:child_process";
import { lstat, open, readFile, rename, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { Fault } from "#base/fault.ts";
import { newKeyLine, parseKeys, type KeyList } from "./key-list.ts";

export type KeySource = {
  read(): Promise<KeyList>;
  /** Puts a new key first and keeps the others; left out: keys are looked after elsewhere. */
  readonly add?: () => Promise<KeyList>;
};

const bytesMax = 64 * 1024;
const commandMs = 10_000;

export const keysInFile = (path: string): KeySource => ({ read: async () => parseKeys(await closedText(path), path) });

export const keysInVariable = (name: string, env: NodeJS.ProcessEnv): KeySource => ({
  read: async () => parseKeys(env[name] ?? "", `$${name}`),
});

/** The command prints the keys; what it writes to stderr is not shown, for it may hold them too. */
export const keysOfCommand = (command: readonly string[]): KeySource => ({
  async read() {
    const [program = "", ...args] = command;
    try {
      const { stdout } = await promisify(execFile)(program, args, { timeout: commandMs, maxBuffer: bytesMax });
      return parseKeys(stdout, program);
    } catch (error) {
      if (error instanceof Fault) throw error;
      const { code, killed } = error as { code?: unknown; killed?: boolean };
      const why = killed === true ? "it took too long" : `it failed (${String(code)})`;
      throw new Fault("unavailable", "ask for the vault's keys", { command: program, why });
    }
  },
});

/** A file of the node's own, for its owner alone; made when it is first needed, which is while nothing is sealed. */
export const ownKeysFile = (path: string, isSealed: () => Promise<boolean>): KeySource => ({
  async read() {
    const text = await closedText(path).catch((error: unknown) => {
      if ((error as Fault).facts?.["errno"] === "ENOENT") return undefined;
      throw error;
    });
    if (text !== undefined) return parseKeys(text, path);
    if (await isSealed()) throw new Fault("invalid", "read the vault's keys", { path, why: gone });
    return parseKeys(await written(path, `${newKeyLine()}\n`), path);
  },
  async add() {
    const before = await this.read().then(() => readFile(path, "utf8"));
    return parseKeys(await written(path, `${newKeyLine()}\n${before}`), path);
  },
});

const gone =
  "it is missing, and there are values that only its keys open: bring it back, or give those values up with " +
  "`millrace secret new-key` into a file of this name that is closed to others";

/** A file that others can read holds no secret. */
async function closedText(path: string): Promise<string> {
  try {
    const { mode, size } = await lstat(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      throw new Fault("invalid", "read the vault's keys", { path, why: `others may read it; run: chmod 600 ${path}` });
    if (size > bytesMax) throw new Fault("invalid", "read the vault's keys", { path, bytesMax });
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault("unavailable", "read the vault's keys", { path, errno: (error as NodeJS.ErrnoException).code });
  }
}

/** Whole and synced before it has its name: a value that is sealed by a lost key is lost, too. */
async function written(path: string, text: string): Promise<string> {
  await rm(`${path}.new`, { force: true });
  {
    await using file = await open(`${path}.new`, "wx", 0o600);
    await file.writeFile(text);
    await file.sync();
  }
  await rename(`${path}.new`, path);
  return text;
}
