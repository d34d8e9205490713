/**
 * Which branches of the kernel the seeds have reached, by V8's block coverage. No simulation checks a branch that no
 * seed reaches.
 */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";

/** Half-open ranges of characters that never ran, by file. */
export type Unreached = Readonly<Record<string, readonly (readonly [number, number])[]>>;

/** Every file whose branches decide, apply or answer. Nothing else is measured, and none of these is left out. */
const measured =
  /\/src\/kernel\/((?:decide\/(?!todo)|apply\/)\w[\w-]*\.ts|step\.ts|ready\/locks\.ts|read\/(?:answer|why)\.ts)$/;

/** The path of a measured file below src/kernel, or undefined for any other file. */
export const measuredPath = (path: string): string | undefined => measured.exec(path)?.[1];

export class Coverage {
  readonly #session = new Session();

  static async begin(): Promise<Coverage> {
    const coverage = new Coverage();
    coverage.#session.connect();
    await coverage.#session.post("Profiler.enable");
    await coverage.#session.post("Profiler.startPreciseCoverage", { callCount: false, detailed: true });
    return coverage;
  }

  async end(): Promise<Unreached> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    this.#session.disconnect();
    const unreached: Record<string, [number, number][]> = {};
    for (const { url, functions } of result) {
      if (measuredPath(url) === undefined) continue;
      const path = fileURLToPath(url);
      const ran = new Uint8Array(readFileSync(path, "utf8").length).fill(1);
      // Outer ranges come first, inner ones correct them.
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      unreached[path] = gaps(ran);
    }
    return unreached;
  }
}

function gaps(ran: Uint8Array): [number, number][] {
  const found: [number, number][] = [];
  for (let i = 0; i < ran.length; i += 1) {
    if (ran[i] === 1) continue;
    const from = i;
    while (i < ran.length && ran[i] === 0) i += 1;
    found.push([from, i]);
  }
  return found;
}

/** What none of several processes has reached. */
export function unreachedByAll(all: readonly Unreached[]): Unreached {
  const files = new Set(all.flatMap((one) => Object.keys(one)));
  const common: Record<string, readonly (readonly [number, number])[]> = {};
  for (const file of files) {
    // A process that never loaded a file says nothing about it.
    const lists = all.flatMap((one) => (one[file] ? [one[file]] : []));
    common[file] = lists.reduce((a, b) =>
      a.flatMap(([from, to]) =>
        b.flatMap(([start, end]): [number, number][] =>
          Math.max(from, start) < Math.min(to, end) ? [[Math.max(from, start), Math.min(to, end)]] : [],
        ),
      ),
    );
  }
  return common;
}

/** A block of code that never ran: its location and text. */
export type Block = { readonly file: string; readonly line: number; readonly code: string };

export function blocksOf(unreached: Unreached): readonly Block[] {
  return Object.entries(unreached)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, ranges]) => {
      const text = readFileSync(path, "utf8");
      return ranges.flatMap(([from, to]) => {
        const code = text.slice(from, to).replaceAll(/\s+/g, " ").trim();
        // Closing braces and the types that Node strips are not branches.
        if (!/[a-z]/i.test(code)) return [];
        return [{ file: measuredPath(path) ?? path, line: text.slice(0, from).split("\n").length, code }];
      });
    });
}
