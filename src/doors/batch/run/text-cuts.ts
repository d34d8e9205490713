/**
 * Where a text file may be cut, so that several tasks read it: behind the end of a row, near every multiple of the
 * wanted size. A file that is not certain to be cut right has no cuts.
 */
import { open, type FileHandle } from "node:fs/promises";

export type CutWish = {
  readonly path: string;
  readonly everyBytes: number;
  /** Lines end rows; or values of JSON do; or lines that are in no quotes, with so many lines of head. */
  readonly rows:
    | { readonly by: "lines" }
    | { readonly by: "values" }
    | { readonly by: "quoted"; readonly quote: string; readonly delimiter: string; readonly headLines: number };
};

export type TextCuts = {
  /** The bytes before the first row, which every piece begins with. */
  readonly head: number;
  /** Offsets at which a row begins, in order; neither the first row nor the end. */
  readonly at: readonly number[];
};

const none: TextCuts = { head: 0, at: [] };

export async function findCuts({ path, everyBytes, rows }: CutWish): Promise<TextCuts> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  switch (rows.by) {
    case "lines":
      return { head: 0, at: await nearMultiples(file, size, everyBytes, lineEnd) };
    case "values": {
      const start = (await readAt(file, 0, windowBytesMin)).toString("latin1");
      // An array of all values has commas between them.
      return /^(?:\u00ef\u00bb\u00bf)?\s*\{/.test(start)
        ? { head: 0, at: await nearMultiples(file, size, everyBytes, valueEnd) }
        : none;
    }
    case "quoted":
      return await new QuotedScan(rows, everyBytes).of(file, size);
  }
}

type RowEnd = (text: Buffer) => number | undefined;

const newline = 0x0a;

const lineEnd: RowEnd = (text) => {
  const at = text.indexOf(newline);
  return at < 0 ? undefined : at + 1;
};

/** Within a value there is a comma between `}` and `{`, and no text of JSON holds a newline as it is. */
const valueEnd: RowEnd = (text) => {
  const found = /\}[ \t\r]*\n[ \t\r\n]*(?=\{)/.exec(text.toString("latin1"));
  return found ? found.index + found[0].length : undefined;
};

const windowBytesMin = 64 * 1024;
const windowBytesMax = 16 * 1024 * 1024;

async function nearMultiples(file: FileHandle, size: number, everyBytes: number, rowEnd: RowEnd): Promise<number[]> {
  const cuts: number[] = [];
  for (let target = everyBytes; target < size - everyBytes / 2;) {
    const at = await firstEnd(file, target, rowEnd);
    if (at === undefined || at >= size) return cuts;
    cuts.push(at);
    target = at + everyBytes;
  }
  return cuts;
}

async function firstEnd(file: FileHandle, from: number, rowEnd: RowEnd): Promise<number | undefined> {
  for (let bytes = windowBytesMin; bytes <= windowBytesMax; bytes *= 4) {
    const at = rowEnd(await readAt(file, from, bytes));
    if (at !== undefined) return from + at;
  }
  return undefined;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

const chunkBytes = 1024 * 1024;

/**
 * Reads the whole file: only from its beginning can be said what is within quotes. Files with a quote elsewhere than
 * around a whole value are left alone, because readers differ about them.
 */
class QuotedScan {
  readonly #quote: number;
  readonly #delimiter: number;
  readonly #headLines: number;
  readonly #everyBytes: number;
  readonly #cuts: number[] = [];
  #head: number | undefined;
  #lines = 0;
  #target = 0;
  #state: "outside" | "within" | "behind" = "outside";
  #last = newline;

  constructor(rows: Extract<CutWish["rows"], { by: "quoted" }>, everyBytes: number) {
    this.#quote = rows.quote.length === 1 ? rows.quote.charCodeAt(0) : -1;
    this.#delimiter = rows.delimiter.charCodeAt(rows.delimiter.length - 1);
    this.#headLines = rows.headLines;
    this.#everyBytes = everyBytes;
    if (rows.headLines === 0) this.#endHead(0);
  }

  async of(file: FileHandle, size: number): Promise<TextCuts> {
    const buffer = Buffer.allocUnsafe(chunkBytes);
    for (let position = 0; position < size;) {
      const { bytesRead } = await file.read(buffer, 0, chunkBytes, position);
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      const isPlain = this.#state === "outside" && this.#head !== undefined && !chunk.includes(this.#quote);
      if (isPlain) this.#plain(chunk, position);
      else if (!this.#quoted(chunk, position)) return none;
      position += bytesRead;
    }
    if (this.#state === "within" || this.#head === undefined) return none;
    return { head: this.#head, at: this.#cuts.filter((at) => at < size) };
  }

  #endHead(at: number): void {
    this.#head = at;
    this.#target = at + this.#everyBytes;
  }

  #cut(at: number): void {
    this.#cuts.push(at);
    this.#target = at + this.#everyBytes;
  }

  /** Nothing of it is in quotes. */
  #plain(chunk: Buffer, position: number): void {
    while (this.#target <= position + chunk.length) {
      const end = chunk.indexOf(newline, Math.max(0, this.#target - position));
      if (end < 0) break;
      this.#cut(position + end + 1);
    }
    this.#last = chunk.at(-1) ?? this.#last;
  }

  /** False: not certain. */
  #quoted(chunk: Buffer, position: number): boolean {
    const [quote, delimiter] = [this.#quote, this.#delimiter];
    let [state, last] = [this.#state, this.#last];
    for (let i = 0; i < chunk.length; i += 1) {
      const byte = chunk[i] ?? 0;
      if (state === "within") {
        if (byte === quote) state = "behind";
        continue;
      }
      if (state === "behind") {
        if (byte === quote) {
          state = "within"; // a doubled quote is one within
          continue;
        }
        if (byte !== delimiter && byte !== newline && byte !== carriageReturn) return false;
        state = "outside";
      }
      if (byte === quote) {
        if (last !== delimiter && last !== newline) return false;
        state = "within";
      } else if (byte === newline) this.#lineEnds(position + i + 1);
      last = byte;
    }
    this.#state = state;
    this.#last = last;
    return true;
  }

  #lineEnds(at: number): void {
    this.#lines += 1;
    if (this.#head === undefined) {
      if (this.#lines === this.#headLines) this.#endHead(at);
    } else if (at >= this.#target) this.#cut(at);
  }
}

const carriageReturn = 0x0d;

export type TextPiece = {
  readonly path: string;
  readonly head: number;
  readonly from: number;
  readonly to: number;
  /** Where it is to be. */
  readonly as: string;
};

/** Writes a piece of a text file as a file of its own. */
export async function writePiece({ path, head, from, to, as }: TextPiece): Promise<void> {
  await using source = await open(path, "r");
  await using target = await open(as, "wx", 0o600);
  const buffer = Buffer.allocUnsafe(chunkBytes);
  for (const [start, end] of [
    [0, from === 0 ? 0 : head],
    [from, to],
  ] as const)
    for (let at = start; at < end;) {
      const { bytesRead } = await source.read(buffer, 0, Math.min(chunkBytes, end - at), at);
      if (bytesRead === 0) throw new Error(`${path} has become shorter`);
      await target.appendFile(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
}
