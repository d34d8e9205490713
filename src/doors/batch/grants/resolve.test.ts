import { deepEqual, equal, throws } from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { rejects } from "node:assert/strict";
import { Grants, type Grant } from "./grant-config.ts";
import { nodeFiles } from "./node-files.ts";
import { resolveName, type Asker } from "./resolve.ts";

const s3 = { endpoint: "http://127.0.0.1:9", bucket: "mill", prefix: "lake/", accessKey: "id", secretKey: "key" };
const grants: readonly Grant[] = Grants.parse([
  { name: "lake", tenants: ["acme"], folder: "/srv/lake" },
  { name: "out", tenants: ["acme"], folder: "/srv/out", write: true },
  { name: "far", tenants: ["*"], s3 },
  { name: "other", tenants: ["bakery"], folder: "/srv/bakery" },
]);
const acme: Asker = { tenant: "acme", isGranted: true, folder: "/files/acme" };

describe("BG1: a name in a query of a tenant", () => {
  const found = (name: string, toWrite = false): string => {
    const place = resolveName(name, acme, grants, toWrite);
    return place.kind === "file" ? `${place.path} in ${place.within}` : `${place.grant} ${place.key}`;
  };

  test("is below a grant's name, its path or its URL", () => {
    equal(found("lake/2026/*.parquet"), "/srv/lake/2026/*.parquet in /srv/lake");
    equal(found("./lake//a.csv"), "/srv/lake/a.csv in /srv/lake");
    equal(found("/srv/lake/a.csv"), "/srv/lake/a.csv in /srv/lake");
    equal(found("far/a/*.parquet"), "far lake/a/*.parquet");
    equal(found("s3://mill/lake/a.parquet"), "far lake/a.parquet");
    equal(found("out/x", true), "/srv/out/x in /srv/out");
  });

  for (const name of [
    "/etc/passwd",
    "/srv/lakes/a.csv",
    "/srv/lake",
    "/srv/lake/../bakery/a.csv",
    "lake/../../etc/passwd",
    "lake/{..,a}/secret.csv",
    "lake/{a,..}/secret.csv",
    "lake/\\../secret.csv",
    "lake",
    "a.csv",
    "other/a.csv",
    "/srv/bakery/a.csv",
    "s3://mill/other/a.parquet",
    "s3://mill/lake/../other/a.parquet",
    "s3://mill/lake/",
    "s3://elsewhere/lake/a.parquet",
    "http://127.0.0.1/a.parquet",
    "file:///etc/passwd",
    "lake/a\0.csv",
  ])
    test(`is refused: ${JSON.stringify(name)}`, () => {
      throws(() => found(name), /invalid/);
    });

  test("is written to only where that is granted", () => {
    throws(() => found("lake/x", true), /out\//);
    throws(() => found("far/x", true), /out\//);
  });

  test("says what there is, and nothing of others", () => {
    throws(() => found("x/y"), /lake\/, out\/, far\//);
    throws(() => resolveName("x/y", { ...acme, tenant: "nobody" }, [grants[0] as Grant], false), /nothing is granted/);
  });

  test("is whatever the node can read in a query of an operator", () => {
    const operator = { ...acme, isGranted: false };
    deepEqual(resolveName("a.csv", operator, grants), { kind: "file", path: "/files/acme/a.csv" });
    deepEqual(resolveName("/etc/hostname", operator, grants), { kind: "file", path: "/etc/hostname" });
  });
});

describe("files of a granted folder", async () => {
  const home = await mkdtemp(join(tmpdir(), "millrace-grants-"));
  after(() => rm(home, { recursive: true, force: true }));

  test("BG1: are not where a link leads out of it", async () => {
    const lake = join(home, "lake");
    await mkdir(join(lake, "real"), { recursive: true });
    await writeFile(join(lake, "real", "a.csv"), "a\n1\n");
    await writeFile(join(home, "secret.csv"), "a\n2\n");
    await symlink("real", join(lake, "inner"));
    await symlink("..", join(lake, "outer"));
    await symlink("../secret.csv", join(lake, "one.csv"));
    const [file] = await nodeFiles(join(lake, "inner", "*.csv"), lake);
    equal(file?.path, join(lake, "real", "a.csv"));
    for (const pattern of ["one.csv", "outer/secret.csv", "outer/*.csv", "*.csv"])
      await rejects(nodeFiles(join(lake, pattern), lake), /leads out of what is granted/, pattern);
  });
});
