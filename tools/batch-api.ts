// Builds what `import ... from "millrace/batch"` finds below node_modules, where Node strips no types: one file of
// JavaScript and the declarations of the API, in dist/batch.
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { binOf } from "./check.ts";
import { repoRoot } from "./generate.ts";

const folder = join(repoRoot, "dist", "batch");
const api = join(repoRoot, "src", "doors", "batch", "api");

/** The API, and this program's way to reach a node: neither room may name the other. */
const entry = `
import { connectWith } from "./doors/batch/api/connect.ts";
import { httpOf } from "./app/client/server.ts";
connectWith(async (options) => {
  const http = httpOf(options, process.env);
  return (path, doing, init) => http.ask(path, doing, init);
});
export * from "./doors/batch/api/batch.ts";
`;

async function buildJavaScript(into: string): Promise<void> {
  await build({
    stdin: { contents: entry, resolveDir: join(repoRoot, "src") },
    outfile: join(into, "batch.js"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    packages: "external",
    logLevel: "error",
  });
}

/** Declarations of the API's own files only: what they show names nothing of other rooms, which this would find. */
async function buildTypes(into: string): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), "millrace-types-"));
  try {
    const options = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--rootDir", join(repoRoot, "src")];
    const config = join(repoRoot, `.types-${process.pid}.json`);
    await writeFile(
      config,
      JSON.stringify({ extends: "./tsconfig.json", include: [], files: [join(api, "batch.ts")] }),
    );
    try {
      execFileSync(process.execPath, [binOf("typescript", "tsc"), "-p", config, ...options, "--outDir", temporary]);
    } finally {
      await rm(config, { force: true });
    }
    const made = join(temporary, "doors", "batch", "api");
    for (const name of await readdir(made)) {
      if (name === "fetched.d.ts") continue; // nothing that is exported shows it
      const text = (await readFile(join(made, name), "utf8")).replaceAll(/from "(\.\/[^"]+)\.ts"/g, 'from "$1.js"');
      const foreign = /from "(#[^"]+)"/.exec(text);
      if (foreign) throw new Error(`${name} shows ${foreign[1]}, which is not part of the API`);
      await writeFile(join(into, name), text);
    }
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Nodes and tests may read the folder meanwhile: it is replaced when all of it is there. */
export async function buildBatchApi(): Promise<void> {
  const fresh = `${folder}.${process.pid}`;
  try {
    await mkdir(fresh, { recursive: true });
    await Promise.all([buildJavaScript(fresh), buildTypes(fresh)]);
    await rm(folder, { recursive: true, force: true });
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  await buildBatchApi();
  console.log(`batch api: ${(await readdir(folder)).length} files`);
}
