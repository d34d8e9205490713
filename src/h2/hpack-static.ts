/** HPACK's static table (RFC 7541 appendix A): entry n stands at staticFields[n]; there is no entry 0. */
import { makeField, type HeaderField } from "./header-field.ts";

const rows: readonly (readonly [name: string, value: string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
];

export const staticCount = rows.length;

const unused = makeField("", "");
export const staticFields: readonly HeaderField[] = [unused, ...rows.map(([name, value]) => makeField(name, value))];

/** The encoder's view: the first entry with a name, and the entry with a name and value. */
export const staticNameIndex: ReadonlyMap<string, number> = new Map(
  rows.map(([name], at): [string, number] => [name, at + 1]).toReversed(),
);
const staticPairIndex: ReadonlyMap<string, number> = new Map(
  rows.map(([name, value], at): [string, number] => [`${name}\n${value}`, at + 1]),
);

/** 0 when there is no such entry. */
export const staticPair = (name: string, value: string): number => staticPairIndex.get(`${name}\n${value}`) ?? 0;
