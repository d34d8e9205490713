// Builds the program of an installed agent: one file, so that it is small, starts quickly, and is replaced at once.
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { repoRoot } from "./generate.ts";

export const agentProgram = join(repoRoot, "dist", "agent", "agent.cjs");

const entry = `
import { runInstalled } from "./doors/deploy/agent/installed/run.ts";
runInstalled(process.argv[2] ?? "").then(() => process.exit(0), (error) => {
  process.stderr.write(String(error?.message ?? error) + "\\n");
  process.exit(1);
});
`;

/** Messages in fifty languages are a third of it. */
export const withoutLocales: Plugin = {
  name: "without-locales",
  setup(building) {
    building.onResolve({ filter: /locales\/index\.js$/ }, () => ({ path: "locales", namespace: "none" }));
    building.onLoad({ filter: /.*/, namespace: "none" }, () => ({ contents: "export {};" }));
  },
};

export async function buildAgentProgram(): Promise<number> {
  const fresh = `${agentProgram}.${process.pid}`;
  await mkdir(join(repoRoot, "dist", "agent"), { recursive: true });
  try {
    await build({
      stdin: { contents: entry, resolveDir: join(repoRoot, "src") },
      outfile: fresh,
      bundle: true,
      platform: "node",
      format: "cjs",
      target: "node26",
      minifySyntax: true,
      minifyWhitespace: true,
      plugins: [withoutLocales],
      logLevel: "error",
    });
    await rename(fresh, agentProgram);
  } finally {
    await rm(fresh, { force: true });
  }
  return (await stat(agentProgram)).size;
}

if (import.meta.main) console.log(`agent: ${Math.round((await buildAgentProgram()) / 1024)} KiB`);
