import { deepEqual, ok, throws } from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import { parseReadName, parseWriteName } from "./names.ts";

const golden = join(import.meta.dirname, "golden", "names.txt");

/** One line: how it is parsed for reading, then for writing. */
function described(name: string): string {
  const tell = (parse: (name: string) => object): string => {
    try {
      return Object.entries(parse(name))
        .map(([field, value]) => `${field}=${String(value)}`)
        .join(" ");
    } catch (error) {
      ok(isGrpcError(error, grpcCode.invalidArgument), String(error));
      return `REFUSED ${error.message}`;
    }
  };
  return `${name}\n  read:  ${tell(parseReadName)}\n  write: ${tell(parseWriteName)}`;
}

test("names are parsed as the golden file says", () => {
  const text = readFileSync(golden, "utf8");
  const names = text.split("\n").filter((line) => line !== "" && !line.startsWith("  "));
  const now = `${names.map(described).join("\n")}\n`;
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(golden, now);
  else deepEqual(now.split("\n"), text.split("\n"), "UPDATE_GOLDEN=1 npm test -- doors/build/names writes it anew");
});

test("every name is either parsed or refused", () => {
  const part = fc.oneof(
    fc.constantFrom("blobs", "uploads", "compressed-blobs", "zstd", "blake3", "sha256", "..", "", "0", "5", "-1"),
    fc.constantFrom("a".repeat(64), "A".repeat(64), "a".repeat(40), "main"),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 10 }), (parts) => {
      for (const parse of [parseReadName, parseWriteName])
        try {
          const { instance, digest } = parse(parts.join("/"));
          ok(!instance.split("/").includes("..") && /^(\w+:)?[0-9a-f]+\/\d+$/.test(digest));
        } catch (error) {
          ok(isGrpcError(error, grpcCode.invalidArgument), String(error));
        }
    }),
    { numRuns: 2_000 },
  );
});

test("a name of thousands of characters is refused unread", () => {
  throws(() => parseReadName("x/".repeat(5_000)), /at most/);
});
