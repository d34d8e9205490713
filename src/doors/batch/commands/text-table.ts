/** Rows as a table for people: numbers to the right, long values cut. */
const widthMax = 60;

export function textTable(
  columns: readonly { readonly name: string; readonly type: string }[],
  rows: readonly (readonly unknown[])[],
) {
  const shown = rows.map((row) => row.map(cellText));
  const widths = columns.map(({ name }, i) =>
    Math.min(widthMax, Math.max(name.length, ...shown.map((row) => row[i]?.length ?? 0))),
  );
  const isNumber = columns.map(({ type }) => /INT|DECIMAL|DOUBLE|FLOAT/.test(type) && !/\[\]|STRUCT|MAP/.test(type));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => fit(cell, widths[i] ?? 0, isNumber[i] ?? false))
      .join("  ")
      .trimEnd();
  return [
    line(columns.map(({ name }) => name)),
    widths.map((width) => "-".repeat(width)).join("  "),
    ...shown.map(line),
  ];
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.replace(/\p{Cc}/gu, "?");
}

const fit = (text: string, width: number, toTheRight: boolean): string => {
  const cut = text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;
  return toTheRight ? cut.padStart(width) : cut.padEnd(width);
};
