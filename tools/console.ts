// Bundles the console into src/console/dist: hashed names, compressed twins beside them, and the page that names them.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { doors } from "#app/doors.ts";
import type { Door } from "#door/door.ts";
import { repoRoot } from "./generate.ts";

export type ConsoleFile = { readonly name: string; readonly bytes: Uint8Array };

type ShownDoor = Pick<Door, "pages" | "jobPart" | "kinds">;

const source = join(repoRoot, "src", "console");

/** The page comes first. */
export async function bundleConsole(of: readonly ShownDoor[] = doors): Promise<readonly ConsoleFile[]> {
  const { outputFiles } = await build({
    entryPoints: [join(source, "main.tsx"), join(source, "style.css")],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2024",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [doorPages(of)],
    outdir: "assets",
    write: false,
    logLevel: "error",
  });
  const assets = outputFiles.map(({ path, contents }) => {
    const extension = path.endsWith(".css") ? "css" : "js";
    const hash = createHash("sha256").update(contents).digest("hex").slice(0, 16);
    return { name: `${extension}-${hash}.${extension}`, bytes: contents };
  });
  const nameOf = (extension: string): string =>
    `/console/assets/${assets.find(({ name }) => name.endsWith(`.${extension}`))?.name}`;
  const template = await readFile(join(source, "index.html"), "utf8");
  const page = template.replace("{{style}}", nameOf("css")).replace("{{script}}", nameOf("js"));
  return [{ name: "index.html", bytes: Buffer.from(page) }, ...assets];
}

/** The module `millrace:door-pages`, which src/console/door-pages.d.ts describes. */
const doorPages = (of: readonly ShownDoor[]): Plugin => ({
  name: "door-pages",
  setup(bundle) {
    bundle.onResolve({ filter: /^millrace:door-pages$/ }, ({ path }) => ({ path, namespace: "millrace" }));
    bundle.onLoad({ filter: /.*/, namespace: "millrace" }, () => ({ contents: moduleOf(of), resolveDir: source }));
  },
});

function moduleOf(of: readonly ShownDoor[]): string {
  const named = (exported: string, module: string, i: number): string =>
    `import { ${exported} as ${exported}${i} } from ${JSON.stringify(resolve(source, module))};`;
  const pages = of.flatMap((door) => door.pages);
  const parts = of.flatMap(({ jobPart, kinds }) => (jobPart ? [{ ...jobPart, kinds }] : []));
  return [
    ...pages.map(({ module }, i) => named("Page", module, i)),
    ...parts.map(({ module }, i) => named("Part", module, i)),
    `export const doorPages = [`,
    ...pages.map(({ path, title }, i) => `  { ...${JSON.stringify({ path, title })}, Page: Page${i} },`),
    `];`,
    `export const jobParts = [`,
    ...parts.flatMap(({ kinds }, i) => kinds.map(({ door }) => `  { door: ${JSON.stringify(door)}, Part: Part${i} },`)),
    `];`,
  ].join("\n");
}

/** Nodes and tests may read the folder meanwhile: the page is replaced last, when all that it names is there. */
async function writeConsole(): Promise<void> {
  const folder = join(source, "dist");
  const [page, ...assets] = await bundleConsole();
  if (!page) throw new Error("the bundle has no page");
  const files = [...assets, page].flatMap((file) => withTwins(file));
  const names = new Set(files.map(({ name }) => name));
  await mkdir(folder, { recursive: true });
  const before = await readdir(folder);
  for (const { name, bytes } of files) {
    if (before.includes(name) && !name.startsWith(page.name)) continue; // its name is the hash of its content
    const path = join(folder, name);
    await writeFile(`${path}.${process.pid}`, bytes);
    await rename(`${path}.${process.pid}`, path);
  }
  for (const name of before) if (!names.has(name)) await rm(join(folder, name), { force: true });
  const total = [page, ...assets].reduce((sum, { bytes }) => sum + gzipSync(bytes).length, 0);
  console.log(`console: ${assets.length + 1} files, ${(total / 1024).toFixed(1)} KiB compressed`);
}

const withTwins = ({ name, bytes }: ConsoleFile): readonly ConsoleFile[] => [
  { name, bytes },
  { name: `${name}.gz`, bytes: gzipSync(bytes, { level: 9 }) },
  { name: `${name}.br`, bytes: brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }) },
];

if (import.meta.main) await writeConsole();
