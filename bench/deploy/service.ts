/** A service without a build, and a repository with one commit. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function commitOf(repository: string): string {
  mkdirSync(repository, { recursive: true });
  writeFileSync(join(repository, "run.sh"), "exec sleep 1000\n");
  const who = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"];
  const git = (...args: readonly string[]): string =>
    execFileSync("git", [...who, ...args], { cwd: repository, encoding: "utf8" });
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", "a version");
  return git("rev-parse", "HEAD").trim();
}

export const releaseBody = (service: string, repository: string, sha: string, labels: readonly string[]) => ({
  service: {
    service,
    build: { run: "mkdir out && cp run.sh out/", output: "out" },
    run: { exec: ["sh", "run.sh"] },
    targets: { labels: [...labels], regions: ["eu"] },
    waves: [{ share: "10%" }, { share: "100%" }],
    health: { silentAfter: "10m" },
  },
  sha,
  repository,
});
