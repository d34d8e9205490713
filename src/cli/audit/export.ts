import { command } from "#door/command.ts";
import { trailFlags } from "./list.ts";

export const auditExport = command({
  name: "audit export",
  about: "Print the whole audit trail, oldest first, one JSON object per line.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: trailFlags,
  examples: ["millrace audit export", "millrace audit export --cluster"],
  async run({ values }, world) {
    const { exportedLines } = await import("./exported.ts");
    for await (const line of exportedLines(values, world)) world.out(line);
    return 0;
  },
});
