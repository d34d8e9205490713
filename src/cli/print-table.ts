/** Rows for people: columns as wide as what is in them, under their headings. */
export function tableLines(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): readonly string[] {
  const all = [headings, ...rows.map((row) => row.map(String))];
  const widths = headings.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
