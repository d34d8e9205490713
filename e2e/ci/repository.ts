/** For tests: a git repository with workflows. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { clearAway } from "#testing/clear-away.ts";

export class TestRepository implements Disposable {
  readonly folder: string;

  constructor(files: Readonly<Record<string, string>>) {
    this.folder = mkdtempSync(join(tmpdir(), "millrace-ci-repository-"));
    this.git("init", "--quiet", "--initial-branch=main");
    this.commit(files);
  }

  /** Returns the commit. */
  commit(files: Readonly<Record<string, string>>): string {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true });
      writeFileSync(join(this.folder, path), text);
    }
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message", "a commit");
    return this.git("rev-parse", "HEAD").trim();
  }

  git(...args: readonly string[]): string {
    const who = ["-c", "user.name=miller", "-c", "user.email=miller@example.invalid"];
    return execFileSync("git", [...who, ...args], { cwd: this.folder, encoding: "utf8" });
  }

  [Symbol.dispose](): void {
    clearAway(this.folder);
  }
}
