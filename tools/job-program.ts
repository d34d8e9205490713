// Builds the program that runs CI jobs as one file: it starts with a third of the CPU that its modules take one by one.
// Beside it is a list of what it was made of: a node that finds one of those changed uses the modules.
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { build, type Plugin } from "esbuild";
import { withoutLocales } from "./agent-program.ts";
import { repoRoot } from "./generate.ts";

const folder = join(repoRoot, "dist", "jobs");
export const jobProgram = join(folder, "host.js");
const source = join(repoRoot, "src");

/** Modules name files beside them: in the bundle these are where they are in the package. */
const inPlace = (inputs: Map<string, string>): Plugin => ({
  name: "in-place",
  setup(building) {
    building.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (!path.startsWith(source)) return undefined;
      const text = await readFile(path, "utf8");
      const name = relative(repoRoot, path);
      inputs.set(name, createHash("sha256").update(text).digest("hex"));
      const own = `new URL(${JSON.stringify(relative(folder, path))}, import.meta.url)`;
      const ownFolder = `process.getBuiltinModule("node:url").fileURLToPath(new URL(".", ${own}))`;
      const contents = text.replaceAll(/import\.meta\.(url|dirname)/g, (_, what) =>
        what === "url" ? `${own}.href` : ownFolder,
      );
      return { contents, loader: "ts", resolveDir: dirname(path) };
    });
  },
});

/** Packages in CommonJS ask for what Node has built in. */
const require = `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);`;

export async function buildJobProgram(): Promise<number> {
  const inputs = new Map<string, string>();
  await mkdir(folder, { recursive: true });
  const fresh = `${jobProgram}.${process.pid}`;
  await build({
    entryPoints: [join(source, "doors/ci/job/host.ts")],
    outfile: fresh,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node26",
    minifySyntax: true,
    minifyWhitespace: true,
    banner: { js: require },
    plugins: [withoutLocales, inPlace(inputs)],
    logLevel: "error",
  });
  const list = JSON.stringify(Object.fromEntries([...inputs].toSorted(([a], [b]) => (a < b ? -1 : 1))), undefined, 1);
  await writeFile(`${fresh}.json`, list);
  await rename(fresh, jobProgram);
  await rename(`${fresh}.json`, join(folder, "inputs.json"));
  return (await stat(jobProgram)).size;
}

if (import.meta.main) console.log(`job: ${Math.round((await buildJobProgram()) / 1024)} KiB`);
