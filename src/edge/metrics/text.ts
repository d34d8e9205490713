/** Prometheus's text format, version 0.0.4. */
import type { Histogram } from "./series.ts";

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

export const metricHead = (name: string, kind: string, help: string): string =>
  `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${kind}\n`;

/** `a="1",b="2"`, without the braces: a histogram adds one more. */
export const labelsText = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, at) => `${name}="${escapeValue(values[at] ?? "")}"`).join(",");

export const sampleText = (name: string, labels: string, value: number): string =>
  labels === "" ? `${name} ${numberText(value)}\n` : `${name}{${labels}} ${numberText(value)}\n`;

export function histogramText(name: string, labels: string, { bounds, counts, sum }: Histogram): string {
  const before = labels === "" ? "" : `${labels},`;
  let text = "";
  let count = 0;
  for (const [at, inRange] of counts.entries()) {
    count += inRange;
    text += sampleText(`${name}_bucket`, `${before}le="${numberText(bounds[at] ?? Infinity)}"`, count);
  }
  return text + sampleText(`${name}_sum`, labels, sum) + sampleText(`${name}_count`, labels, count);
}

const escapeValue = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

const numberText = (value: number): string =>
  value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : Object.is(value, -0) ? "0" : String(value);
