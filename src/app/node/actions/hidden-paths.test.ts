import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { Config } from "#app/config/config.ts";
import { doors } from "#app/doors.ts";
import { schemaOf, variantsOf, type JsonSchema } from "#door/json-schema.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { hiddenPaths } from "./hidden-paths.ts";

const token = { name: "ops", tenant: "*", roles: ["operator"] };
const pod = { runsOn: ["linux"], image: "runner" };
const key = Buffer.alloc(16).toString("base64");

const hidden = (config: object, file?: string): readonly string[] =>
  hiddenPaths(Config.parse(config), dataFolder("/data"), { configFile: file, doors }).toSorted();

test("all files with secrets and all folders with data are hidden", () => {
  deepEqual(hidden({}), ["/data"]);
  deepEqual(hidden({ node: { listen: ["unix", "unix:/run/mill.sock", "tcp:127.0.0.1:1"] } }), [
    "/data",
    "/run/mill.sock",
  ]);
  deepEqual(
    hidden(
      {
        cluster: { secretFile: "/s/cluster" },
        edge: {
          tls: { certificate: "/s/public.pem", key: "/s/private.pem", clientCa: "/s/ca.pem" },
          identity: { tokens: [{ ...token, file: "/s/ops" }] },
        },
        mesh: { keys: [key], keysFile: "/s/mesh" },
        journal: { kind: "sqlite", directory: "/journal" },
        blobs: {
          kind: "disk",
          directory: "/blobs",
          authoritative: {
            kind: "s3",
            endpoint: "https://s3.example",
            bucket: "b",
            credentials: "/s/s3",
            shortCuts: [{ url: "https://cache.example", token: "/s/short" }],
            peers: { token: "/s/peers" },
          },
        },
        traces: { endpoint: "http://127.0.0.1:4318", token: "/s/traces" },
        batch: { inputs: [{ name: "lake", tenants: ["mill"], folder: "/lake" }] },
        deploy: { signingKey: "/s/signing" },
        pools: [{ kind: "kubernetes", name: "pods", max: 1, tokenFile: "/s/pods", templates: [pod] }],
      },
      "/etc/../etc/millrace.yaml",
    ),
    ["/blobs", "/data", "/etc/millrace.yaml", "/journal", "/lake"].concat(
      ["cluster", "mesh", "ops", "peers", "pods", "private.pem", "s3", "short", "signing", "traces"].map(
        (name) => `/s/${name}`,
      ),
    ),
  );
});

test("and so are those of other tiers, and of PostgreSQL", () => {
  const reapi = { kind: "reapi", address: "grpcs://cache:443", token: "/s/one", tokens: "/s/each", authority: "/s/ca" };
  const journal = { kind: "postgres", url: "postgres://u@h/d?sslkey=/s/pg.key&sslcert=/s/pg.pem" };
  const found = hidden({ journal, blobs: { kind: "disk", authoritative: reapi } });
  deepEqual(
    found.filter((path) => path.startsWith("/s/")),
    ["/s/each", "/s/one", "/s/pg.key"],
  );
  deepEqual(found.filter((path) => path.endsWith("pass")).length, 1);
  const names = { kind: "postgres", url: "postgres://u@h/d?sslkey=/s/names.key" };
  const authoritative = { kind: "directory", directory: "/shared", names };
  deepEqual(hidden({ blobs: { kind: "disk", authoritative } }).includes("/s/names.key"), true);
});

/** Settings that name a file, recognised by their maximal length. */
function fileSettings(places: readonly JsonSchema[], above = ""): readonly string[] {
  return places
    .flatMap(variantsOf)
    .flatMap((place) => [
      ...((place as { maxLength?: number }).maxLength === 4_096 ? [above] : []),
      ...(place.items ? fileSettings([place.items], above) : []),
      ...Object.entries(place.properties ?? {}).flatMap(([name, one]) => fileSettings([one], `${above}.${name}`)),
    ]);
}

test("a new setting that names a file is either hidden or listed as not secret", () => {
  const tier = ".blobs.authoritative";
  const isPublic = [
    ".edge.tls.certificate",
    ".edge.tls.clientCa",
    ".edge.identity.issuers.keys.path",
    ".pools.caFile",
    `${tier}.authority`,
  ];
  const isHidden = [
    ".batch.inputs.folder",
    ".cluster.secretFile",
    ".deploy.signingKey",
    ".edge.identity.tokens.file",
    ".edge.tls.key",
    ".mesh.keysFile",
    ".pools.tokenFile",
    ".traces.token",
    ...["credentials", "token", "tokens", "shortCuts.token", "peers.token"].map((name) => `${tier}.${name}`),
  ];
  const found = new Set(fileSettings([schemaOf(Config)]));
  deepEqual([...found].toSorted(), [...isPublic, ...isHidden].toSorted());
});
