import { formatDuration } from "#base/units.ts";
import { command, serverFlags } from "#door/command.ts";

export const poolShow = command({
  name: "pool show",
  about: "Show a pool with its machines, what they run, and what is wrong with them.",
  words: "<pool>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace pool show linux"],
  async run({ positionals: [pool], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { showPool } = await import("#api/pools.ts");
    if (pool === undefined) return (world.note("pool show: name the pool; millrace pool list shows them"), 2);
    const shown = await apiOf(values, world.env, "show the pool")(showPool, { params: { pool } });
    if (values.json) return (world.out(JSON.stringify(shown)), 0);
    const { kind, desired, max, waiting, oldestWaitSeconds, busy, idle, starting, leaving, machines } = shown;
    world.out(`${shown.pool}  ${kind}${shown.spot ? ", spot" : ""}, ${desired} of ${max} machines wanted`);
    const since = waiting > 0 ? `, the first for ${formatDuration(Math.round(oldestWaitSeconds * 1_000))}` : "";
    world.out(`  ${waiting} tasks wait${since}`);
    world.out(`  ${busy} machines busy, ${idle} idle, ${starting} starting, ${leaving} leaving`);
    for (const one of machines) {
      const task = one.task === undefined ? "" : `  ${one.task}`;
      const phase = one.work === "none" || one.phase !== "up" ? one.phase : one.work;
      world.out(`  ${one.name}  ${phase}  ${formatDuration(one.ageSeconds * 1_000)}${task}`);
      if (one.problem) world.out(`    ${one.problem.reason}: ${one.problem.message}`);
      for (const event of one.events ?? []) world.out(`    ${event}`);
    }
    return 0;
  },
});
