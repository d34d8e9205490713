/**
 * JSON for expressions. JSON.parse would put keys that look like numbers first, and a matrix must keep its order; it
 * also knows no limit of depth.
 */
import { Dictionary, isArray, numberText, type Value } from "./value.ts";

const depthMax = 100;

export class JsonError extends Error {}

export function readJson(text: string): Value {
  const reader = new JsonReader(text);
  return reader.whole();
}

export function writeJson(value: Value, indent = ""): string {
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return numberText(value);
  if (typeof value === "string") return quoted(value);
  const inner = `${indent}  `;
  if (isArray(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((item) => inner + writeJson(item, inner)).join(",\n")}\n${indent}]`;
  }
  const pairs = [...value.entries()].map(([key, item]) => `${inner}${quoted(key)}: ${writeJson(item, inner)}`);
  return pairs.length === 0 ? "{}" : `{\n${pairs.join(",\n")}\n${indent}}`;
}

function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(/[\u0085\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

class JsonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Value {
    const value = this.#value();
    this.#blank();
    if (this.#at < this.#text.length) throw this.#unexpected();
    return value;
  }

  #value(): Value {
    this.#blank();
    const character = this.#text[this.#at];
    if (character === "{") return this.#nested(() => this.#object());
    if (character === "[") return this.#nested(() => this.#array());
    if (character === '"') return this.#string();
    for (const [word, value] of [["null", null] as const, ["true", true] as const, ["false", false] as const])
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    return this.#number();
  }

  #nested<T>(read: () => T): T {
    this.#depth += 1;
    if (this.#depth > depthMax) throw new JsonError(`the JSON text is nested more than ${depthMax} levels deep`);
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #object(): Dictionary {
    const dictionary = new Dictionary();
    this.#at += 1;
    if (this.#skip("}")) return dictionary;
    do {
      this.#blank();
      if (this.#text[this.#at] !== '"') throw this.#unexpected();
      const key = this.#string();
      if (!this.#skip(":")) throw this.#unexpected();
      dictionary.set(key, this.#value());
    } while (this.#skip(","));
    if (!this.#skip("}")) throw this.#unexpected();
    return dictionary;
  }

  #array(): Value[] {
    const items: Value[] = [];
    this.#at += 1;
    if (this.#skip("]")) return items;
    do items.push(this.#value());
    while (this.#skip(","));
    if (!this.#skip("]")) throw this.#unexpected();
    return items;
  }

  #string(): string {
    const from = this.#at;
    let end = this.#text.indexOf('"', from + 1);
    while (end >= 0 && this.#isEscaped(end)) end = this.#text.indexOf('"', end + 1);
    if (end < 0) throw this.#unexpected();
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(from, end + 1)) as string;
    } catch {
      throw new JsonError(`the string at position ${from + 1} cannot be read`);
    }
  }

  #isEscaped(at: number): boolean {
    let backslashes = 0;
    while (this.#text[at - 1 - backslashes] === "\\") backslashes += 1;
    return backslashes % 2 === 1;
  }

  #number(): number {
    return Number(this.#match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y));
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined || found === "") throw this.#unexpected();
    this.#at += found.length;
    return found;
  }

  #skip(character: string): boolean {
    this.#blank();
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #blank(): void {
    while (" \t\r\n".includes(this.#text[this.#at] ?? "x")) this.#at += 1;
  }

  #unexpected(): JsonError {
    const character = this.#text[this.#at];
    const what = character === undefined ? "the text ends" : `${JSON.stringify(character)} is not expected`;
    return new JsonError(`${what} at position ${this.#at + 1}`);
  }
}
