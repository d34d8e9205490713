/** Builds the program of installed agents, as the package has it. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** Answers with where it is. */
export function bundleAgent(): string {
  const tool = join(root, "tools", "agent-program.ts");
  const { status, stderr } = spawnSync(process.execPath, [tool], { encoding: "utf8", timeout: 60_000 });
  if (status !== 0) throw new Error(`the agent was not bundled: ${stderr}`);
  return join(root, "dist", "agent", "agent.cjs");
}
