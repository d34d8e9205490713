import type { World } from "#door/command.ts";

/** The job that the command names, or an error that shows how to name one. */
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
