/** What a scheduler keeps of each task of a stage that waits: the kernel alone. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { benchLimits } from "#bench/kernel/limits.ts";
import type { Figure, Report } from "#bench/report.ts";
import { partTemplate } from "#doors/batch/plan.ts";
import type { Command } from "#kernel/model/command.ts";
import { createState } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";

export function measurePlanMemory(report: Report, sizes: readonly number[]): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const digest = `${"ab".repeat(32)}/12345`;
  const rows: Figure[][] = [];
  const each = sizes.map((size) => {
    collect();
    const before = process.memoryUsage().heapUsed;
    const [startedMs, state] = [performance.now(), createState(0, { ...benchLimits, tasksPerStageMax: 2_000_000 })];
    const stageMax = 100_000;
    const stages = Array.from({ length: Math.ceil(size / stageMax) }, (_, stage) => ({
      name: `wave ${stage}`,
      needs: [],
      after: "success" as const,
      failFast: true,
      mayFail: false,
      parallelMax: 0,
      tasks: {
        template: partTemplate,
        tasks: Array.from({ length: Math.min(stageMax, size - stage * stageMax) }, (__, part) => ({
          key: `0123456789abcdef01234567 ${part}`,
          spec: JSON.stringify({ stage: digest, part }),
        })),
      },
    }));
    const command: Command = {
      kind: "submit",
      tenant: "t",
      door: "batch",
      name: "memory",
      spec: "{}",
      payloadHash: "0",
      priority: 0,
      deadlineMs: 86_400_000,
      stages,
    };
    const outcome = step(state, command, 1_000_000);
    if (!outcome.ok) throw new Error(`the job was refused: ${JSON.stringify(outcome.rejection)}`);
    const tookUs = ((performance.now() - startedMs) * 1_000) / size;
    stages.length = 0;
    collect();
    const bytes = (process.memoryUsage().heapUsed - before) / size;
    rows.push([size, bytes, tookUs, state.ready.size]);
    return bytes;
  });
  report.table("A stage's tasks in the scheduler", ["tasks", "bytes each", "us each", "in line"], rows);
  report.target({ what: "scheduler bytes a task, at most", atMost: 1_024, got: Math.max(...each) });
  report.target({ what: "bytes a task, most tasks / fewest", atMost: 1.2, got: (each.at(-1) ?? 0) / (each[0] ?? 1) });
}
