/** Flags of commands that list machines a page at a time. */
import type { World } from "#door/command.ts";

export const pageFlags = {
  limit: { type: "string", value: "NUMBER", about: "how many at most, up to 1000; left out: 200" },
  cursor: { type: "string", value: "CURSOR", about: "go on where the last list ended" },
} as const;

/** Undefined: it is no such number. */
export function limitOf(text: string | undefined): number | undefined {
  const limit = Number(text ?? 200);
  return Number.isInteger(limit) && limit >= 1 && limit <= 1_000 ? limit : undefined;
}

/** On standard error, so that the list itself stays a list. */
export function tellNext(world: World, next: string | null, command: string): void {
  if (next !== null) world.note(`more: millrace ${command} --cursor ${next}`);
}
