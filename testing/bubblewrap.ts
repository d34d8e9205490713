import { execFileSync } from "node:child_process";

/** Why tests in bubblewrap cannot run here, as their reason to skip; false if they can. */
export function bwrapMissing(): string | false {
  if (process.platform !== "linux") return "needs linux: namespaces";
  try {
    execFileSync("bwrap", ["--ro-bind", "/", "/", "--unshare-user", "true"], { stdio: "pipe" });
    return false;
  } catch (error) {
    return `needs bubblewrap: ${String(error).split("\n")[0]}`;
  }
}
