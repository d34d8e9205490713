/** Rows for people: columns as wide as what is in them, under their headings. Every command that lists prints this. */
export type Column = { readonly name: string; readonly isNumber?: boolean };

export type TableStyle = {
  /** Longer values are cut; left out: none is. */
  readonly widthMax?: number;
  /** A line of dashes below the headings. */
  readonly hasRule?: boolean;
};

/** Control characters are replaced: names come from other people, and a terminal would obey them. */
export function tableLines(
  headings: readonly (string | Column)[],
  rows: readonly (readonly (string | number)[])[],
  { widthMax = Infinity, hasRule = false }: TableStyle = {},
): readonly string[] {
  const columns = headings.map((heading) => (typeof heading === "string" ? { name: heading } : heading));
  const names = columns.map(({ name }) => printable(name));
  const shown = rows.map((row) => row.map(printable));
  const widths = names.map((name, i) =>
    Math.min(
      widthMax,
      shown.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), name.length),
    ),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => fit(cell, widths[i] ?? 0, columns[i]?.isNumber ?? false))
      .join("  ")
      .trimEnd();
  const rule = hasRule ? [widths.map((width) => "-".repeat(width)).join("  ")] : [];
  return [line(names), ...rule, ...shown.map(line)];
}

/** Names of values, each with its value beside it. */
export const fieldLines = (fields: readonly (readonly [name: string, value: string | number])[]): readonly string[] =>
  tableLines(["", ""], fields).slice(1);

/** Texts of others, for a terminal that would obey their control characters. */
export const printable = (value: string | number): string => String(value).replace(/\p{Cc}/gu, "?");

function fit(text: string, width: number, isNumber: boolean): string {
  const cut = text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;
  return isNumber ? cut.padStart(width) : cut.padEnd(width);
}
