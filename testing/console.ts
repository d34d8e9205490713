/** Bundles the console for tests in a browser: a node serves the files that it finds. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

export function bundleConsole(): void {
  const tool = join(import.meta.dirname, "..", "tools", "console.ts");
  const { status, stderr } = spawnSync(process.execPath, [tool], { encoding: "utf8", timeout: 60_000 });
  if (status !== 0) throw new Error(`the console was not bundled: ${stderr}`);
}
