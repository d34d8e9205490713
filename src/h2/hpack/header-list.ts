/**
 * A decoded header list that follows the rules of RFC 9113 section 8: pseudo-fields first, each once, only those of the
 * right direction; no hop-by-hop fields of HTTP/1.1. The three readers return undefined for a malformed list.
 */
import { fieldKind, type HeaderField } from "./header-field.ts";

export class HeaderList {
  readonly fields: readonly HeaderField[];
  readonly method: string | undefined;
  readonly scheme: string | undefined;
  readonly path: string | undefined;
  readonly authority: string | undefined;
  /** Of an extended CONNECT (RFC 8441), such as "websocket". */
  readonly protocol: string | undefined;
  readonly status: number;
  /** -1 when there is none. */
  readonly contentLength: number;

  constructor(fields: readonly HeaderField[], seen: FieldSummary) {
    this.fields = fields;
    this.method = seen.pseudo[fieldKind.method];
    this.scheme = seen.pseudo[fieldKind.scheme];
    this.path = seen.pseudo[fieldKind.path];
    this.authority = seen.pseudo[fieldKind.authority];
    this.protocol = seen.pseudo[fieldKind.protocol];
    this.status = Number(seen.pseudo[fieldKind.status] ?? 0);
    this.contentLength = seen.contentLength;
  }

  /** The first value of that name; the parts of a cookie are joined (RFC 9113 section 8.2.3). */
  get(name: string): string | undefined {
    const { fields } = this;
    if (name === "cookie") return this.#cookie();
    for (let i = 0; i < fields.length; i += 1) {
      const field = fields[i] as HeaderField;
      if (field.name === name) return field.value;
    }
    return undefined;
  }

  /** All values of that name, in order. */
  all(name: string): readonly string[] {
    return this.fields.filter((field) => field.name === name).map(({ value }) => value);
  }

  #cookie(): string | undefined {
    const crumbs = this.all("cookie");
    return crumbs.length === 0 ? undefined : crumbs.join("; ");
  }
}

/** Reused for every list: the findings of the pass over the fields. */
class FieldSummary {
  readonly pseudo: (string | undefined)[] = [undefined, undefined, undefined, undefined, undefined, undefined];
  contentLength = -1;
  host: string | undefined;
  pseudoCount = 0;

  /** False when the fields break a rule. */
  read(fields: readonly HeaderField[]): boolean {
    this.pseudo.fill(undefined);
    this.contentLength = -1;
    this.host = undefined;
    this.pseudoCount = 0;
    for (let i = 0; i < fields.length; i += 1) {
      const field = fields[i] as HeaderField;
      const { kind } = field;
      if (kind === fieldKind.regular) continue;
      if (kind < fieldKind.firstRegular) {
        if (this.pseudoCount !== i || this.pseudo[kind] !== undefined) return false; // too late, or twice
        this.pseudo[kind] = field.value;
        this.pseudoCount += 1;
      } else if (kind === fieldKind.contentLength) {
        if (!this.#readLength(field.value)) return false;
      } else if (kind === fieldKind.host) {
        if (this.host !== undefined && this.host !== field.value) return false;
        this.host = field.value;
      } else return false;
    }
    return true;
  }

  /** Several lengths are allowed if they agree (RFC 9110 section 8.6). */
  #readLength(text: string): boolean {
    if (!/^\d{1,15}$/.test(text)) return false;
    const length = Number(text);
    if (this.contentLength !== -1 && this.contentLength !== length) return false;
    this.contentLength = length;
    return true;
  }
}

const seen = new FieldSummary();

/** `takesProtocols`: extended CONNECT was offered, which has a scheme and a path as well (RFC 8441 section 4). */
export function readRequest(fields: readonly HeaderField[], takesProtocols = false): HeaderList | undefined {
  if (!seen.read(fields)) return undefined;
  const { pseudo } = seen;
  const protocol = pseudo[fieldKind.protocol];
  if (pseudo[fieldKind.status] !== undefined || (protocol !== undefined && !takesProtocols)) return undefined;
  const method = pseudo[fieldKind.method];
  const path = pseudo[fieldKind.path];
  const authority = pseudo[fieldKind.authority];
  if (method === undefined || method === "") return undefined;
  if (protocol !== undefined && (protocol === "" || method !== "CONNECT" || !authority)) return undefined;
  if (method === "CONNECT" && protocol === undefined) {
    if (pseudo[fieldKind.scheme] !== undefined || path !== undefined || !authority) return undefined;
  } else {
    if (!pseudo[fieldKind.scheme] || path === undefined) return undefined;
    const origin = path.startsWith("/") || (path === "*" && method === "OPTIONS");
    if (!origin) return undefined;
  }
  if (authority !== undefined) {
    if (authority.includes("@")) return undefined; // RFC 9113 section 8.3.1: no user information
    if (seen.host !== undefined && !sameHost(seen.host, authority)) return undefined;
  }
  return new HeaderList(fields, seen);
}

const sameHost = (a: string, b: string): boolean => a === b || a.toLowerCase() === b.toLowerCase();

export function readResponse(fields: readonly HeaderField[]): HeaderList | undefined {
  if (!seen.read(fields) || seen.pseudoCount !== 1) return undefined;
  const status = seen.pseudo[fieldKind.status];
  if (status === undefined || !/^[1-9]\d\d$/.test(status) || status === "101") return undefined;
  return new HeaderList(fields, seen);
}

export function readTrailers(fields: readonly HeaderField[]): HeaderList | undefined {
  return seen.read(fields) && seen.pseudoCount === 0 ? new HeaderList(fields, seen) : undefined;
}
