import { command } from "#door/command.ts";

export const bench = command({
  name: "bench",
  about: "Measure this machine: hands over to the benchmarks of the source tree.",
  words: "[-- argument ...]",
  positionalsMax: 0,
  takesRest: true,
  flags: {},
  examples: ["millrace bench"],
  async run({ rest = [] }, world) {
    const { existsSync } = await import("node:fs");
    const { join } = await import("node:path");
    const main = join(import.meta.dirname, "..", "..", "bench", "main.ts");
    if (!existsSync(main)) {
      world.note("bench: the benchmarks are part of the source tree, which is not installed here");
      return 1;
    }
    const { spawn } = await import("node:child_process");
    const child = spawn(process.execPath, [main, ...rest], { stdio: "inherit" });
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return code === 0 ? 0 : 1;
  },
});
