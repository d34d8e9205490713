/** Numbers for the last line and the table. */
export type Figures = Readonly<globalThis.Record<string, number | string>>;

export function spread(values: readonly number[]): { readonly p50: number; readonly max: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return { p50: at(0.5), max: at(1) };
}

export function table(figures: Figures): string {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  return Object.entries(figures)
    .map(([name, value]) => `  ${name.padEnd(width)}  ${value}`)
    .join("\n");
}

export const line = (figures: Figures): string =>
  Object.entries(figures)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
