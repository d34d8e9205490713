import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";

/** Set when plain-user.test.ts runs a suite: a folder that the plain user owns. */
export const userFolderVariable = "MILLRACE_TEST_USER_FOLDER";

/** A folder to write to that is not below /tmp, which sandboxes replace; undefined where there is none. */
export function lastingFolder(): string | undefined {
  return process.env[userFolderVariable] ?? ["/var/lib", homedir()].find(isWritable);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
