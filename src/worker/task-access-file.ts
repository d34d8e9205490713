/**
 * Gives what runs as a task the means to call its node: the token is in a file for its user alone, so that neither
 * `env`, `ps` nor a core of the environment in a log shows it.
 */
import { chown, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { RunContext } from "./runner.ts";

export const tokenFileName = ".millrace-token";

/**
 * `folder` is gone with the attempt, and what runs sees it as `seenAs`. Returns the variables that say where to call;
 * none where there is no access.
 */
export async function giveAccess(
  { access }: Pick<RunContext, "access">,
  folder: string,
  { uid, seenAs = folder }: { readonly uid?: number | undefined; readonly seenAs?: string } = {},
): Promise<Readonly<Record<string, string>>> {
  const found = await access?.();
  if (!found) return {};
  const path = join(folder, tokenFileName);
  try {
    await writeFile(path, found.token, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    throw new Fault("invalid", "give a task its token", { why: `${tokenFileName} is there already` }, cause);
  }
  if (uid !== undefined) await chown(path, uid, uid);
  return {
    MILLRACE_SERVER: found.server,
    MILLRACE_TOKEN_FILE: join(seenAs, tokenFileName),
    ...(found.ca !== undefined && { MILLRACE_CA: found.ca }),
  };
}

/** From a folder that stays, or that outputs are taken from. */
export const takeAccessBack = (folder: string): Promise<void> =>
  rm(join(folder, tokenFileName), { recursive: true, force: true });
