/** Caches on a real node, through the unmodified official client in a process of its own, in both versions. */
import { equal, match, ok } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openLab, withClients, type ClientAnswer, type HeldJob, type Lab } from "#e2e/node/ci/lab.ts";

const MiB = 1024 * 1024;
const valueOf = (answer: ClientAnswer | undefined): unknown => {
  ok(answer?.ok === true, JSON.stringify(answer));
  return answer.value;
};

describe("caches by @actions/cache", { timeout: 120_000 }, () => {
  let lab: Lab;
  let job: HeldJob;
  before(async () => {
    lab = await openLab({ cacheRepositoryBytesMax: 40 * MiB });
    job = await lab.hold();
  });
  after(() => lab[Symbol.asyncDispose]());

  for (const version of ["v2", "v1"] as const)
    test(`${version}: saved, restored exactly and by a prefix, missed, saved once`, async () => {
      const given = await lab.env(job);
      const { ACTIONS_CACHE_SERVICE_V2: _v2, ...v1 } = given.actionEnv;
      const services = version === "v2" ? given : { ...given, actionEnv: v1 };
      const folder = join(lab.folder, `cached-${version}`);
      await mkdir(folder, { recursive: true });
      const bytes = randomBytes(9 * MiB);
      await writeFile(join(folder, "big.bin"), bytes);
      const saved = await withClients(services, lab.folder, [
        ["saveCache", [folder], `${version}-deps-1`],
        ["saveCache", [folder], `${version}-deps-1`],
      ]);
      ok(Number(valueOf(saved[0])) > 0);
      equal(valueOf(saved[1]), -1, "the second is told that there is one");
      await rm(folder, { recursive: true });
      const restored = await withClients(services, lab.folder, [
        ["restoreCache", [folder], `${version}-deps-1`],
        ["restoreCache", [folder], `${version}-deps-2`, [`${version}-none-`, `${version}-deps-`]],
        ["restoreCache", [folder], `${version}-none`],
      ]);
      equal(valueOf(restored[0]), `${version}-deps-1`);
      equal(valueOf(restored[1]), `${version}-deps-1`);
      equal(valueOf(restored[2]), null);
      ok((await readFile(join(folder, "big.bin"))).equals(bytes));
    });

  test("CI-69: a branch reads the caches of its base, and writes its own; the base sees none of it", async () => {
    const folder = join(lab.folder, "scoped");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "x"), "x");
    const main = await lab.env(job, { cacheRefs: ["refs/heads/main"] });
    const topic = await lab.env(job, { cacheRefs: ["refs/heads/topic", "refs/heads/main"] });
    const other = await lab.env(job, { repository: "octo/other", cacheRefs: ["refs/heads/main"] });
    const foreign = await lab.env(job, { tenant: "other", cacheRefs: ["refs/heads/main"] });
    await withClients(main, lab.folder, [["saveCache", [folder], "scoped-main"]]);
    await withClients(topic, lab.folder, [["saveCache", [folder], "scoped-topic"]]);
    const ask = ["restoreCache", [folder], "scoped-topic", ["scoped-"]] as const;
    equal(valueOf((await withClients(topic, lab.folder, [ask]))[0]), "scoped-topic");
    equal(valueOf((await withClients(main, lab.folder, [ask]))[0]), "scoped-main");
    equal(valueOf((await withClients(other, lab.folder, [ask]))[0]), null);
    equal(valueOf((await withClients(foreign, lab.folder, [ask]))[0]), null);
  });

  test("CI-69: beyond its quota, a repository loses what was not used for longest", async () => {
    const services = await lab.env(job, { repository: "octo/full" });
    const keys = ["one", "two", "three"];
    for (const key of keys) {
      await mkdir(join(lab.folder, "full", key), { recursive: true });
      await writeFile(join(lab.folder, "full", key, "x"), randomBytes(15 * MiB));
    }
    const saves = keys.map((key) => ["saveCache", [join(lab.folder, "full", key)], `full-${key}`] as const);
    for (const answer of await withClients(services, lab.folder, saves)) valueOf(answer);
    const kept = await lab.services.caches.list("mill", "octo/full");
    equal(kept.map(({ key }) => key).join(), "full-three,full-two");
    equal(await lab.services.caches.remove("mill", "octo/full", ({ key }) => key === "full-two"), 1);
    equal((await lab.services.caches.list("mill", "octo/full")).length, 1);
  });

  test("core, glob and tool-cache work beside them", async () => {
    await writeFile(join(lab.folder, "hashed.txt"), "hashed\n");
    const [hash, tool, input] = await withClients(await lab.env(job), lab.folder, [
      ["hashFiles", "hashed.txt"],
      ["toolCache", `${lab.origin}/healthz`],
      ["core", "some-input"],
    ]);
    match(String(valueOf(hash)), /^[0-9a-f]{64}$/);
    match(String(valueOf(tool)), /tool\/1\.2\.3/);
    equal(valueOf(input), "");
  });
});
