/** The part of a body that a request asks for (RFC 9110, section 14). */
export type Range = { readonly offset: number; readonly length: number } | "all" | "unsatisfiable";

/** More than one range, other units and malformed ones are answered with the whole, as the RFC allows. */
export function readRange(header: string | null, sizeBytes: number): Range {
  const match = header === null ? null : /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim());
  if (!match) return "all";
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return "all";
  if (first === "") {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? "unsatisfiable" : { offset: sizeBytes - length, length };
  }
  const offset = Number(first);
  if (last !== "" && Number(last) < offset) return "all";
  if (offset >= sizeBytes) return "unsatisfiable";
  const end = last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  return { offset, length: end - offset };
}
