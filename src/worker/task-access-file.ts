/**
 * Gives what runs as a task the means to call its node: the token is in a file for its user alone, so that neither
 * `env`, `ps` nor a core of the environment in a log shows it.
 */
import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunContext } from "./runner.ts";

export const tokenFileName = ".millrace-token";

/** `folder` is gone with the attempt. Returns the variables that say where to call; none where there is no access. */
export async function giveAccess(
  { access }: Pick<RunContext, "access">,
  folder: string,
  uid?: number,
): Promise<Readonly<Record<string, string>>> {
  const found = await access?.();
  if (!found) return {};
  const path = join(folder, tokenFileName);
  await writeFile(path, found.token, { mode: 0o600, flag: "wx" });
  if (uid !== undefined) await chown(path, uid, uid);
  return {
    MILLRACE_SERVER: found.server,
    MILLRACE_TOKEN_FILE: path,
    ...(found.ca !== undefined && { MILLRACE_CA: found.ca }),
  };
}
