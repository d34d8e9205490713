/**
 * The token of a data folder: a user who can read it is the node's operator. It is created once and kept. A deleted,
 * damaged or world-readable token is replaced when the node starts.
 */
import { readFileSync } from "node:fs";
import { lstat, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { newToken, tokenProblem } from "#edge/identity/bearer.ts";
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import { hasLivingNode, type DataFolder } from "./data-folder.ts";

const fileMode = 0o600;
const tokenLengthMax = 200;

export const ownerTokenFile = ({ path }: DataFolder): string => join(path, "operator.token");

/** For the node that holds the folder's lock. */
export async function ownerToken(folder: DataFolder): Promise<string> {
  const path = ownerTokenFile(folder);
  return (await kept(path)) ?? (await made(path));
}

/** For tools of the folder's owner; undefined if there is none, or if they may not read it. */
export function readOwnerToken(folder: DataFolder): string | undefined {
  try {
    const token = readFileSync(ownerTokenFile(folder), "utf8").trim();
    return tokenProblem(token, tokenLengthMax) === undefined ? token : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The token for the node that published this address in its folder. Only on this machine, where the token counts, and
 * not for a program that now listens at the address of a dead node.
 */
export function ownerTokenFor(folder: DataFolder, url: string): string | undefined {
  const { protocol, hostname } = new URL(url);
  const isHere = protocol === "unix:" || isLoopbackHost(hostname.replace(/^\[|\]$/g, ""));
  return isHere && hasLivingNode(folder) ? readOwnerToken(folder) : undefined;
}

async function kept(path: string): Promise<string | undefined> {
  try {
    const { mode, uid } = await lstat(path);
    const isOurs = process.platform === "win32" || ((mode & 0o7777) === fileMode && uid === process.getuid?.());
    const token = isOurs ? (await readFile(path, "utf8")).trim() : "";
    return tokenProblem(token, tokenLengthMax) === undefined ? token : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw failed(path, error);
  }
}

/** Written completely to a new temporary file, which no other process has open, and renamed into place. */
async function made(path: string): Promise<string> {
  const token = newToken();
  try {
    await rm(`${path}.new`, { recursive: true, force: true });
    await using file = await open(`${path}.new`, "wx", fileMode);
    await file.writeFile(`${token}\n`);
    await file.sync();
    await rename(`${path}.new`, path);
    return token;
  } catch (error) {
    throw failed(path, error);
  }
}

const failed = (file: string, error: unknown): Fault =>
  new Fault("unavailable", "keep the operator's token", { file, errno: (error as NodeJS.ErrnoException).code }, error);
