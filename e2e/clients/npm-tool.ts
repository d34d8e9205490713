/** Build tools from npm, installed only for the tests and kept for the next run; never a dependency of ours. */
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { run } from "./processes.ts";

export type NpmTool = { readonly folder: string } | { readonly why: string };

/** `name` with its exact version, such as turbo@2.11.10. */
export async function npmTool(name: string): Promise<NpmTool> {
  const root = join(tmpdir(), `millrace-clients-${userInfo().uid}`, name.replaceAll(/[^a-z0-9.]/g, "-"));
  const folder = join(root, "node_modules");
  if (existsSync(join(root, "installed"))) return { folder };
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true });
  await writeFile(join(root, "package.json"), JSON.stringify({ private: true }));
  const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", name];
  const installed = await run("npm", args, { cwd: root, env: withProxies(), timeoutMs: 240_000 }).catch(
    (error: Error) => ({
      code: -1,
      output: error.message,
    }),
  );
  if (installed.code !== 0) return { why: `npm could not install ${name} (${lastLine(installed.output)})` };
  await writeFile(join(root, "installed"), "");
  return { folder };
}

/** How npm reaches its registry is configured on the machine. */
const withProxies = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value !== undefined && name !== "PATH" ? [[name, value]] : [],
    ),
  );

const lastLine = (text: string): string => text.trim().split("\n").at(-1)?.slice(0, 200) ?? "";
