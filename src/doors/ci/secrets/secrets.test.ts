import { deepEqual, equal, match, notEqual, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { SecretBoxes, sodium } from "./boxes.ts";
import { maskWarnings } from "./maskable.ts";
import { scopesOf, secretPrefix } from "./scope.ts";
import { vaultSecrets } from "./vault-secrets.ts";

const monthMs = 30 * 24 * 3_600_000;
const key = Buffer.alloc(32, 7);

async function sealed(value: string, to: string): Promise<string> {
  return Buffer.from((await sodium()).crypto_box_seal(value, Buffer.from(to, "base64"))).toString("base64");
}

describe("sealed boxes", () => {
  test("are opened with the tenant's key of this month or the last, and no other", async () => {
    const clock = { now: 100 * monthMs, wallMs: () => clock.now };
    const boxes = new SecretBoxes(() => Promise.resolve(key), clock);
    const { keyId, key: open } = await boxes.publicKey("acme");
    const box = await sealed("naïve", open);
    notEqual(await sealed("naïve", open), box, "no two boxes are alike");
    equal(await boxes.open("acme", keyId, box), "naïve");
    await rejects(boxes.open("other", keyId, box), /cannot be opened/);
    clock.now += monthMs;
    notEqual((await boxes.publicKey("acme")).key, open);
    equal(await boxes.open("acme", keyId, box), "naïve");
    clock.now += monthMs;
    await rejects(boxes.open("acme", keyId, box), /ask for the public key again/);
  });

  test("that were changed, or are none, are refused", async () => {
    const boxes = new SecretBoxes(() => Promise.resolve(key), { wallMs: () => monthMs });
    const { keyId, key: open } = await boxes.publicKey("acme");
    const bytes = Buffer.from(await sealed("value", open), "base64");
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await rejects(boxes.open("acme", keyId, bytes.toString("base64")), /cannot be opened/);
    await rejects(boxes.open("acme", keyId, "eA=="), /no sealed box/);
    const notText = (await sodium()).crypto_box_seal(new Uint8Array([0xff, 0xfe]), Buffer.from(open, "base64"));
    await rejects(boxes.open("acme", keyId, Buffer.from(notText).toString("base64")), /cannot be opened/);
  });
});

test("CI-63 the secret of an environment counts more than its repository's, its owner's and the tenant's", async () => {
  const kept = new Map<string, string>();
  const places = scopesOf("Mill/flour", "Prod/eu").map((scope) => secretPrefix(scope));
  deepEqual(places, ["ci/", "ci/mill/", "ci/Mill/flour/", "ci/Mill/flour/environments/prod%2Feu/"]);
  for (const [at, prefix] of places.entries())
    for (const name of ["A", "B", "C", "D"].slice(0, 4 - at)) kept.set(`${prefix}${name}`, `${name}${at}`);
  kept.set("ci/Mill/other/A", "not ours");
  kept.set("deploy/A", "not ci's");
  const vault = {
    list: ({ prefix = "" }) =>
      Promise.resolve({
        secrets: [...kept.keys()]
          .filter((name) => name.startsWith(prefix))
          .map((name) => ({ tenant: "acme", name, version: 1, bytes: 1, key: "k", by: "ada", changedAtMs: 0 })),
        cursor: undefined,
      }),
    read: (_tenant: string, name: string) => Promise.resolve(Buffer.from(kept.get(name) ?? "")),
  };
  deepEqual(await vaultSecrets(vault, "acme", { repository: "Mill/flour", environment: "prod/EU" }), {
    A: "A3",
    B: "B2",
    C: "C1",
    D: "D0",
  });
  deepEqual(await vaultSecrets(vault, "acme", { repository: "Mill/flour" }), { A: "A2", B: "B2", C: "C1", D: "D0" });
});

test("CI-51 who sets a secret is told what of it logs will show", () => {
  deepEqual(maskWarnings("a long secret"), []);
  match(maskWarnings("ab").join(), /fewer than 3/);
  match(maskWarnings('{"user":"me","key":"abcdef","n":12}').join(), /each of its 3 values.*2 of its values/);
  match(maskWarnings("{not json").join(), /^$/);
  match(maskWarnings("first\nab\nthird").join(), /lines of fewer/);
  ok(maskWarnings("value\n").some((warning) => warning.includes("line break")));
});
