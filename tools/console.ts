// Bundles the console into src/console/dist: hashed names, compressed twins beside them, and the page that names them.
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { doors } from "#app/doors.ts";
import type { ConsolePage } from "#door/door.ts";
import { repoRoot } from "./generate.ts";

export type ConsoleFile = { readonly name: string; readonly bytes: Uint8Array };

const source = join(repoRoot, "src", "console");

/** The page comes first. */
export async function bundleConsole(
  pages: readonly ConsolePage[] = doors.flatMap((door) => door.pages),
): Promise<readonly ConsoleFile[]> {
  const { outputFiles } = await build({
    entryPoints: [join(source, "main.tsx"), join(source, "style.css")],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2024",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [doorPages(pages)],
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
const doorPages = (pages: readonly ConsolePage[]): Plugin => ({
  name: "door-pages",
  setup(bundle) {
    bundle.onResolve({ filter: /^millrace:door-pages$/ }, ({ path }) => ({ path, namespace: "millrace" }));
    bundle.onLoad({ filter: /.*/, namespace: "millrace" }, () => ({
      contents: [
        ...pages.map(({ module }, i) => `import { Page as Page${i} } from ${JSON.stringify(resolve(source, module))};`),
        `export const doorPages = [`,
        ...pages.map(({ path, title }, i) => `  { ...${JSON.stringify({ path, title })}, Page: Page${i} },`),
        `];`,
      ].join("\n"),
      resolveDir: source,
    }));
  },
});

async function writeConsole(): Promise<void> {
  const folder = join(source, "dist");
  const files = await bundleConsole();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const { name, bytes } of files) {
    const path = join(folder, name);
    await writeFile(path, bytes);
    await writeFile(`${path}.gz`, gzipSync(bytes, { level: 9 }));
    await writeFile(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  }
  const total = files.reduce((sum, { bytes }) => sum + gzipSync(bytes).length, 0);
  console.log(`console: ${files.length} files, ${(total / 1024).toFixed(1)} KiB compressed`);
}

if (import.meta.main) await writeConsole();
