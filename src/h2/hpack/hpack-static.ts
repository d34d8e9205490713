/** HPACK's static table (RFC 7541 appendix A): entry n is staticFields[n]; there is no entry 0. */
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

/** The encoder's view: the entries by name. Names with several values are adjacent in the table. */
export type StaticName = { readonly firstIndex: number; readonly values: readonly string[] };

export const staticNames: ReadonlyMap<string, StaticName> = new Map(
  rows.map(([name]) => {
    const firstIndex = rows.findIndex(([other]) => other === name) + 1;
    const values = rows.filter(([other]) => other === name).map(([, value]) => value);
    return [name, { firstIndex, values }] as const;
  }),
);
