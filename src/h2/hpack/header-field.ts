/**
 * One decoded header field. The rules of RFC 9113 section 8 that concern a single field are checked once, when the
 * field is created, and stored as its `kind`: a field that is read from a table a thousand times is checked only once.
 */

/** What the rules need to know of a field. The pseudo-fields come first; `firstRegular` is where the others begin. */
export const fieldKind = {
  method: 0,
  scheme: 1,
  path: 2,
  authority: 3,
  status: 4,
  protocol: 5,
  firstRegular: 6,
  regular: 6,
  contentLength: 7,
  host: 8,
  /** Invalid by itself: a capital letter in the name, a line break in the value, a hop-by-hop field of HTTP/1.1. */
  malformed: 9,
} as const;

const special: ReadonlyMap<string, number> = new Map([
  [":method", fieldKind.method],
  [":scheme", fieldKind.scheme],
  [":path", fieldKind.path],
  [":authority", fieldKind.authority],
  [":status", fieldKind.status],
  [":protocol", fieldKind.protocol],
  ["content-length", fieldKind.contentLength],
  ["host", fieldKind.host],
  ["connection", fieldKind.malformed],
  ["proxy-connection", fieldKind.malformed],
  ["keep-alive", fieldKind.malformed],
  ["transfer-encoding", fieldKind.malformed],
  ["upgrade", fieldKind.malformed],
]);

/** Overhead that RFC 7541 section 4.1 counts for every field, in tables and in lists. */
export const fieldOverheadBytes = 32;

export class HeaderField {
  readonly name: string;
  readonly value: string;
  readonly kind: number;
  /** Intermediaries must not put it into a table either. */
  readonly neverIndexed: boolean;

  constructor(name: string, value: string, kind: number, neverIndexed: boolean) {
    this.name = name;
    this.value = value;
    this.kind = kind;
    this.neverIndexed = neverIndexed;
  }

  get size(): number {
    return this.name.length + this.value.length + fieldOverheadBytes;
  }
}

/** The kind by the name alone; for `te` the value decides, in `kindOf`. */
export function kindOfName(name: string): number {
  return special.get(name) ?? (isFieldName(name) ? fieldKind.regular : fieldKind.malformed);
}

/** The kind of a field whose value has no NUL, CR or LF. */
export function kindOf(name: string, value: string, nameKind: number): number {
  if (nameKind === fieldKind.regular && name === "te" && value !== "trailers") return fieldKind.malformed;
  return hasOuterSpace(value) ? fieldKind.malformed : nameKind;
}

/** The kind of a field of our own, which is not checked yet. */
export function kindOfPair(name: string, value: string): number {
  return hasControl(value) ? fieldKind.malformed : kindOf(name, value, kindOfName(name));
}

export function makeField(name: string, value: string): HeaderField {
  return new HeaderField(name, value, kindOfPair(name, value), false);
}

/** RFC 9113 section 8.2.1: visible ASCII without capitals; a colon only in front, and all such names are known. */
function isFieldName(name: string): boolean {
  if (name.length === 0) return false;
  for (let i = 0; i < name.length; i += 1) {
    const char = name.charCodeAt(i);
    if (char <= 0x20 || char >= 0x7f || char === 0x3a || (char >= 0x41 && char <= 0x5a)) return false;
  }
  return true;
}

function hasControl(value: string): boolean {
  for (let i = 0; i < value.length; i += 1) {
    const char = value.charCodeAt(i);
    if (char === 0 || char === 10 || char === 13 || char > 0xff) return true;
  }
  return false;
}

function hasOuterSpace(value: string): boolean {
  if (value.length === 0) return false;
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(value.length - 1);
  return first === 0x20 || first === 9 || last === 0x20 || last === 9;
}
