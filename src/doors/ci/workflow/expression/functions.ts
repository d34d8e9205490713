/** The functions that every expression may call (CI-28, CI-29). */
import { JsonError, readJson, writeJson } from "./json.ts";
import { areEqual, foldCase, isArray, isPrimitive, textOf, type Value } from "./value.ts";

/** What evaluation could not do; the text is for the author of the expression. */
export class EvaluationFault extends Error {}

export type ExpressionFunction = (...args: readonly Value[]) => Value;

export const textBytesMax = 10 * 1024 * 1024;

export const wellKnown: ReadonlyMap<string, ExpressionFunction> = new Map<string, ExpressionFunction>([
  ["contains", contains],
  ["endswith", (text = null, end = null) => bothPrimitive(text, end, (a, b) => a.endsWith(b))],
  ["format", format],
  ["fromjson", fromJson],
  ["join", join],
  ["startswith", (text = null, start = null) => bothPrimitive(text, start, (a, b) => a.startsWith(b))],
  ["tojson", (value = null) => writeJson(value)],
]);

function bothPrimitive(left: Value, right: Value, test: (a: string, b: string) => boolean): boolean {
  return isPrimitive(left) && isPrimitive(right) && test(foldCase(textOf(left)), foldCase(textOf(right)));
}

function contains(search: Value = null, item: Value = null): Value {
  if (isPrimitive(search)) return bothPrimitive(search, item, (a, b) => a.includes(b));
  const items = isArray(search) ? search : [...search.values()];
  return items.some((candidate) => areEqual(candidate, item));
}

function join(list: Value = null, separator: Value = ","): Value {
  if (isArray(list))
    return bounded(list.map((item) => textOf(item)).join(isPrimitive(separator) ? textOf(separator) : ","));
  return isPrimitive(list) ? textOf(list) : "";
}

function fromJson(text: Value = null): Value {
  try {
    return readJson(textOf(text));
  } catch (cause) {
    if (cause instanceof JsonError) throw new EvaluationFault(`Error parsing fromJson: ${cause.message}`);
    throw cause;
  }
}

function format(pattern: Value = null, ...args: readonly Value[]): Value {
  const text = textOf(pattern);
  let result = "";
  let at = 0;
  while (at < text.length) {
    const special = text.slice(at).search(/[{}]/);
    if (special < 0) return bounded(result + text.slice(at));
    result += text.slice(at, at + special);
    at += special;
    const hole = /^\{(\d{1,3})\}/.exec(text.slice(at, at + 6));
    if (text.startsWith("{{", at) || text.startsWith("}}", at)) {
      result += text[at] ?? "";
      at += 2;
    } else if (hole) {
      const index = Number(hole[1]);
      if (index >= args.length)
        throw new EvaluationFault(`The following format string references more arguments than were supplied: ${text}`);
      result = bounded(result + textOf(args[index] ?? null));
      at += hole[0].length;
    } else throw new EvaluationFault(`The following format string is invalid: ${text}`);
  }
  return result;
}

function bounded(text: string): string {
  if (text.length > textBytesMax) throw new EvaluationFault("The maximum allowed memory size was exceeded");
  return text;
}
