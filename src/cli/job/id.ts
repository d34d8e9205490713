import type { World } from "#door/command.ts";

/** The job that a command is about, or a word on how to name it. */
export function jobIdOf(
  command: string,
  positionals: readonly string[],
  world: Pick<World, "note">,
): string | undefined {
  const [jobId] = positionals;
  if (jobId === undefined)
    world.note(`${command}: name the job, for example: millrace ${command} j0-1 (millrace job list shows them)`);
  return jobId;
}
