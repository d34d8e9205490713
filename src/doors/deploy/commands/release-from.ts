/** A release as the command line says it: the service file, and the commit that is meant. */
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import type { z } from "zod";
import { Fault } from "#base/fault.ts";
import { readChecked } from "#door/yaml-file.ts";
import { ServiceFile } from "#doors/deploy/service/service-file.ts";

export type ReleaseBody = { service: z.input<typeof ServiceFile>; sha: string; repository: string };

export async function releaseFrom(
  file: string,
  { sha, repository }: { readonly sha?: string; readonly repository?: string },
): Promise<ReleaseBody> {
  const service = await serviceFrom(file);
  const where = repository ?? dirname(resolve(file));
  return { service, sha: sha ?? headOf(where), repository: where };
}

/** Checked here too: a mistake is then named with its line. */
export async function serviceFrom(file: string): Promise<z.input<typeof ServiceFile>> {
  await readChecked(file, ServiceFile, "read service file");
  return parse(await readFile(file, "utf8")) as z.input<typeof ServiceFile>;
}

function headOf(repository: string): string {
  try {
    return execFileSync("git", ["-C", repository, "rev-parse", "HEAD"], { encoding: "utf8", stdio: "pipe" }).trim();
  } catch (error) {
    throw new Fault(
      "invalid",
      "find commit",
      { repository, why: "it is no git repository with a commit", wants: "--sha and --repository" },
      error,
    );
  }
}
