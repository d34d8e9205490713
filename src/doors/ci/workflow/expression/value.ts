/** The values of expressions, and how they turn into one another. Semantics CI-21 to CI-27. */

export type Value = null | boolean | number | string | readonly Value[] | Dictionary;

/**
 * An object whose keys are found in any case, as contexts demand, in the order in which they were added.
 * `env` on Linux is the exception: there `Path` and `PATH` are two variables.
 */
export class Dictionary {
  readonly #pairs = new Map<string, { readonly key: string; value: Value }>();
  readonly #isCaseSensitive: boolean;

  constructor(entries: Iterable<readonly [string, Value]> = [], options: { readonly caseSensitive?: boolean } = {}) {
    this.#isCaseSensitive = options.caseSensitive ?? false;
    for (const [key, value] of entries) this.set(key, value);
  }

  get(key: string): Value | undefined {
    return this.#pairs.get(this.#fold(key))?.value;
  }

  has(key: string): boolean {
    return this.#pairs.has(this.#fold(key));
  }

  /** A key that is there in another case keeps its first spelling. */
  set(key: string, value: Value): void {
    const folded = this.#fold(key);
    const pair = this.#pairs.get(folded);
    if (pair) pair.value = value;
    else this.#pairs.set(folded, { key, value });
  }

  get size(): number {
    return this.#pairs.size;
  }

  *entries(): Generator<readonly [string, Value]> {
    for (const { key, value } of this.#pairs.values()) yield [key, value];
  }

  *values(): Generator<Value> {
    for (const { value } of this.#pairs.values()) yield value;
  }

  #fold(key: string): string {
    return this.#isCaseSensitive ? key : foldCase(key);
  }
}

export type PlainValue =
  | null
  | boolean
  | number
  | string
  | readonly PlainValue[]
  | { readonly [key: string]: PlainValue };

/** From JSON-like data of our own making. */
export function valueOf(plain: PlainValue | undefined): Value {
  if (plain === undefined) return null;
  if (plain === null || typeof plain !== "object") return plain;
  if (Array.isArray(plain)) return plain.map((item: PlainValue) => valueOf(item));
  return new Dictionary(Object.entries(plain).map(([key, value]) => [key, valueOf(value)] as const));
}

export function plainOf(value: Value): PlainValue {
  if (value instanceof Dictionary)
    return Object.fromEntries([...value.entries()].map(([key, item]) => [key, plainOf(item)]));
  if (isArray(value)) return value.map((item) => plainOf(item));
  return value;
}

export const isArray = (value: Value): value is readonly Value[] => Array.isArray(value);

export type Kind = "Null" | "Boolean" | "Number" | "String" | "Array" | "Object";

export function kindOf(value: Value): Kind {
  if (value === null) return "Null";
  if (typeof value === "boolean") return "Boolean";
  if (typeof value === "number") return "Number";
  if (typeof value === "string") return "String";
  return isArray(value) ? "Array" : "Object";
}

export function isTruthy(value: Value): boolean {
  if (typeof value === "number") return value !== 0 && !Number.isNaN(value);
  if (typeof value === "string") return value.length > 0;
  return value !== null && value !== false;
}

export function textOf(value: Value): string {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return numberText(value);
  return isArray(value) ? "Array" : "Object";
}

/**
 * At most 15 significant digits, and an exponent when it is 15 or more or below -5: the format "G15" of the reference
 * implementation, which is what users see when a number becomes text.
 */
export function numberText(value: number): string {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return String(value);
  const [mantissa = "", exponentText = "0"] = value.toExponential(14).split("e");
  const exponent = Number(exponentText);
  if (exponent >= -5 && exponent < 15) {
    const fixed = value.toFixed(Math.max(0, 14 - exponent));
    return fixed.includes(".") ? fixed.replace(/\.?0+$/, "") : fixed;
  }
  const digits = mantissa.replace(/\.?0+$/, "");
  return `${digits}E${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

export function numberOf(value: Value): number {
  if (value === null) return 0;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number") return value;
  if (typeof value !== "string") return Number.NaN;
  const text = value.trim();
  if (/^0b/i.test(text)) return Number.NaN; // JavaScript reads binary numbers, expressions do not
  return Number(text);
}

export function areEqual(left: Value, right: Value): boolean {
  if (isPrimitive(left) && isPrimitive(right)) {
    if (typeof left === "string" && typeof right === "string") return foldCase(left) === foldCase(right);
    if (left === null && right === null) return true;
    return numberOf(left) === numberOf(right);
  }
  return left === right; // arrays and objects: the same instance only
}

/** Undefined when the two cannot be ordered: NaN, arrays and objects. */
export function compare(left: Value, right: Value): number | undefined {
  if (!isPrimitive(left) || !isPrimitive(right)) return undefined;
  if (typeof left === "string" && typeof right === "string") {
    const [a, b] = [foldCase(left), foldCase(right)];
    if (a === b) return 0;
    return a < b ? -1 : 1;
  }
  const [a, b] = [numberOf(left), numberOf(right)];
  if (Number.isNaN(a) || Number.isNaN(b)) return undefined;
  return a - b === 0 || a === b ? 0 : a < b ? -1 : 1;
}

export const isPrimitive = (value: Value): value is null | boolean | number | string =>
  value === null || typeof value !== "object";

/** Ordinal and without case: one character for one character (`ß` stays), and the dotless ı is no I. */
export function foldCase(text: string): string {
  // oxlint-disable-next-line eslint/no-control-regex -- ASCII is the usual case, and by far the quickest
  if (/^[\x00-\x7f]*$/.test(text)) return text.toUpperCase();
  let folded = "";
  for (const character of text) {
    const upper = character.toUpperCase();
    folded += upper.length === character.length && character !== "ı" ? upper : character;
  }
  return folded;
}
