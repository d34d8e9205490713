/** The pure parts of the services: what makes way, lists of blocks, addresses; the reference lists every REST call. */
import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import { blockName, readBlockList } from "./block-list.ts";
import { toEvict } from "#doors/ci/services/caches/cache-match.ts";
import { expiryOf } from "#doors/ci/services/artifacts/artifact-names.ts";
import { serverUrl } from "./job-services.ts";
import { restPaths } from "./rest.ts";
import { sealWith } from "./seal.ts";
import { openSigned, signedAddress } from "./signed-address.ts";

describe("services", () => {
  test("the reference lists every REST call", () => {
    const page = readFileSync(new URL("../../../../docs/reference/ci.md", import.meta.url), "utf8");
    deepEqual(
      restPaths.filter((path) => !page.includes(`\`${path}\``)),
      [],
    );
  });

  test("caches that were not used for longest go, until the rest fits; the last used stays", () => {
    const Entry = fc.record({
      key: fc.string(),
      sizeBytes: fc.nat(100),
      createdAtMs: fc.nat(1_000),
      usedAtMs: fc.nat(1_000),
    });
    fc.assert(
      fc.property(
        fc.array(Entry, { maxLength: 20 }),
        fc.nat(500),
        fc.nat(1_000),
        (entries, bytesMax, unusedSinceMs) => {
          const gone = new Set(toEvict(entries, bytesMax, unusedSinceMs));
          const kept = entries.filter((entry) => !gone.has(entry));
          const sum = kept.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
          ok(sum <= bytesMax || kept.length <= 1);
          ok(kept.every(({ usedAtMs }) => usedAtMs >= unusedSinceMs));
          const oldestKept = Math.min(...kept.map(({ usedAtMs }) => usedAtMs));
          ok([...gone].every(({ usedAtMs }) => usedAtMs <= oldestKept));
        },
      ),
    );
  });

  test("a list of blocks is read in its order, and nothing else is", () => {
    deepEqual(readBlockList("<BlockList><Latest>YQ==</Latest>\n<Latest>Yg==</Latest></BlockList>", 5), [
      "YQ==",
      "Yg==",
    ]);
    deepEqual(readBlockList("<BlockList></BlockList>", 5), []);
    fc.assert(
      fc.property(fc.string(), (text) => {
        if (!text.includes("<BlockList>")) throws(() => readBlockList(text, 5), /not valid/);
      }),
    );
    throws(() => readBlockList(`<BlockList>${"<Latest>YQ==</Latest>".repeat(6)}</BlockList>`, 5), /more than 5/);
    throws(() => readBlockList("<BlockList><Latest>YQ==</Uncommitted></BlockList>", 5), /cannot be read/);
    equal(blockName("YS+/YQ=="), "YS-_YQ");
    for (const id of [null, "", "../x", "a b", "x".repeat(200)]) throws(() => blockName(id), /base64/);
  });

  test("a signed address allows what it says until its time, and nothing else when it is changed", async () => {
    const seal = sealWith(
      async () => new Uint8Array(32).fill(7),
      () => 0,
    );
    const signed = { does: "download", tenant: "mill", id: "artifact.7", fileName: "a b.zip" } as const;
    const url = new URL(await signedAddress(seal, "http://node", signed, 1_000));
    deepEqual(await openSigned(seal, url, 999), signed);
    await rejects(openSigned(seal, url, 1_000), /expired/);
    for (const change of ["artifact.8", "upload", "other"]) {
      const from = { "artifact.8": "artifact.7", upload: "download", other: "mill" }[change] ?? "";
      await rejects(openSigned(seal, new URL(url.href.replace(from, change)), 0), /not made by this cluster/);
    }
    await rejects(openSigned(seal, new URL(url.href.replace("se=1000", "se=9999")), 0), /not made by this cluster/);
    await rejects(
      openSigned(
        sealWith(
          async () => new Uint8Array(32),
          () => 0,
        ),
        url,
        0,
      ),
      /not made by this cluster/,
    );
  });

  test("artifacts end when they were asked to, and never later than allowed", () => {
    const limits = { retentionMsDefault: 90, retentionMsMax: 100 };
    equal(expiryOf(undefined, 1_000, limits), 1_090);
    equal(expiryOf(new Date(1_050).toISOString(), 1_000, limits), 1_050);
    equal(expiryOf(new Date(9_999).toISOString(), 1_000, limits), 1_100);
    throws(() => expiryOf(new Date(999).toISOString(), 1_000, limits), /passed/);
    throws(() => expiryOf("tomorrow", 1_000, limits), /a time/);
  });

  test("the server has a name that clients of artifacts accept", () => {
    equal(serverUrl("http://127.0.0.1:7411"), "http://ci.localhost:7411");
    equal(serverUrl("http://localhost:7411"), "http://ci.localhost:7411");
    equal(serverUrl("https://ci.example.localhost"), "https://ci.example.localhost");
  });
});
