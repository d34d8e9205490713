/** Five fields as POSIX has them (CI-58). */

const fields = [
  { name: "minute", from: 0, to: 59, words: [] },
  { name: "hour", from: 0, to: 23, words: [] },
  { name: "day of the month", from: 1, to: 31, words: [] },
  {
    name: "month",
    from: 1,
    to: 12,
    words: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
  },
  { name: "day of the week", from: 0, to: 6, words: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
] as const;

/** Undefined when the schedule is one that we can keep. */
export function cronProblem(cron: string): string | undefined {
  const parts = cron.trim().split(/\s+/);
  const isFine =
    parts.length === fields.length && fields.every((field, index) => isFieldFine(parts[index] ?? "", field));
  return isFine ? undefined : "Invalid cron expression. Expected format: '* * * * *' (minute hour day month weekday)";
}

function isFieldFine(part: string, field: (typeof fields)[number]): boolean {
  return part.split(",").every((piece) => {
    const match = /^(\*|[\w]+(?:-[\w]+)?)(?:\/(\d+))?$/.exec(piece);
    if (!match) return false;
    const [, range = "", step] = match;
    if (step !== undefined && Number(step) < 1) return false;
    if (range === "*") return true;
    const ends = range.split("-").map((end) => valueOf(end, field));
    const [first = Number.NaN, last = first] = ends;
    return first >= field.from && last <= field.to && first <= last;
  });
}

function valueOf(text: string, field: (typeof fields)[number]): number {
  const index = (field.words as readonly string[]).indexOf(text.toLowerCase());
  if (index >= 0) return index + field.from;
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}
