/** Compares the deployment files with the program: ports, probes, users, settings and files must match. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { Config, readConfig } from "#app/config/config.ts";
import { settingsOf } from "#app/config/config-settings.ts";
import { edgeAddressDefault } from "#app/config/edge-config.ts";
import { checkJoin } from "#app/config/join-check.ts";
import { meshListenDefault } from "#app/config/mesh-config.ts";
import { Lab } from "#e2e/node/build/execution-lab.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const repoRoot = dirname(import.meta.dirname);
const folder = join(repoRoot, "deploy/kubernetes");
const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(":") + 1));
const ports = { edge: portOf(edgeAddressDefault), nodes: 7_433, gossip: portOf(meshListenDefault) };

type Manifest = {
  readonly kind: string;
  readonly metadata?: { readonly name: string };
  readonly [field: string]: unknown;
};

/** Follows a path into parsed data: every step must exist. */
function at(value: unknown, ...steps: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of steps) {
    ok(typeof here === "object" && here !== null, `nothing at ${steps.join(".")}`);
    here = (here as Record<string | number, unknown>)[step];
  }
  ok(here !== undefined, `nothing at ${steps.join(".")}`);
  return here;
}

type Named = { readonly name: string };
type Port = Named & { readonly containerPort: number; readonly protocol: string };
type Variable = Named & { readonly value?: string; readonly valueFrom?: object };
type Probe = { readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string } };
type Mount = Named & { readonly mountPath: string };

function manifests(): readonly Manifest[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .flatMap((name) =>
      parseAllDocuments(readFileSync(join(folder, name), "utf8"), { uniqueKeys: true }).map((document) => {
        if (!("errors" in document)) throw new Error(`${name} is empty`);
        deepEqual(document.errors, [], name);
        return document.toJS() as Manifest;
      }),
    );
}

describe("the Kubernetes manifests", () => {
  const all = manifests();
  const only = (kind: string, name = "millrace"): Manifest => {
    const [found, ...more] = all.filter((one) => one.kind === kind && one.metadata?.name === name);
    ok(found && more.length === 0, `one ${kind} called ${name}`);
    return found;
  };
  const pod = at(only("StatefulSet"), "spec", "template", "spec");
  const container = at(pod, "containers", 0);
  const containerPorts = at(container, "ports") as readonly Port[];
  const numberOf = (name: string): number => containerPorts.find((port) => port.name === name)?.containerPort ?? 0;
  let config: Config;

  before(async () => {
    const scratch = await mkdtemp(join(tmpdir(), "millrace-deploy-"));
    const file = join(scratch, "config.yaml");
    await writeFile(file, String(at(only("ConfigMap"), "data", "config.yaml")));
    const env = Object.fromEntries(
      (at(container, "env") as readonly Variable[]).map(({ name, value }) => [
        name,
        value?.replace("$(POD_IP)", "10.1.2.3") ?? made[name] ?? "made-up",
      ]),
    );
    try {
      config = await readConfig({ file, env });
    } finally {
      clearAway(scratch);
    }
  });

  test("are all listed, and nothing else is", () => {
    const [listed] = all.filter(({ kind }) => kind === "Kustomization");
    const files = readdirSync(folder).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
    deepEqual([...(at(listed, "resources") as readonly string[])].toSorted(), files.toSorted());
    for (const { kind, apiVersion } of all) ok(typeof apiVersion === "string" && kind.length > 0);
  });

  test("use the ports that the program listens on", () => {
    deepEqual(
      [numberOf("edge"), numberOf("nodes"), numberOf("gossip-tcp"), numberOf("gossip-udp")],
      [ports.edge, ports.nodes, ports.gossip, ports.gossip],
    );
    equal(portOf(config.edge.listen?.[0] ?? ""), ports.edge);
    equal(portOf(config.node.listen[0] ?? ""), ports.nodes);
    equal(portOf(config.node.advertise ?? ""), ports.nodes);
    equal(portOf(config.mesh?.listen ?? ""), ports.gossip);
    equal(portOf(config.mesh?.advertise ?? ""), ports.gossip);
    for (const service of all.filter(({ kind }) => kind === "Service"))
      for (const port of at(service, "spec", "ports") as readonly { targetPort: string; port: number }[])
        equal(numberOf(port.targetPort), port.port, port.targetPort);
  });

  test("have a headless service by which pods find each other before they are ready", () => {
    const name = String(at(only("StatefulSet"), "spec", "serviceName"));
    const service = only("Service", name);
    equal(at(service, "spec", "clusterIP"), "None");
    equal(at(service, "spec", "publishNotReadyAddresses"), true);
    deepEqual(config.mesh?.join, [`${name}:${ports.gossip}`]);
    const labels = at(only("StatefulSet"), "spec", "template", "metadata", "labels");
    for (const other of all.filter(({ kind }) => kind === "Service")) deepEqual(at(other, "spec", "selector"), labels);
    deepEqual(at(only("StatefulSet"), "spec", "selector", "matchLabels"), labels);
  });

  test("use only real settings, and together make a cluster's configuration", () => {
    const known = new Set([...settingsOf(Config).values()].map(({ variable }) => variable));
    const others = ["MILLRACE_CONFIG", "POD_IP", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    for (const { name } of at(container, "env") as readonly Variable[])
      ok(known.has(name) || others.includes(name), name);
    checkJoin(config);
    equal(config.node.name, "made-up");
    equal(at(pod, "enableServiceLinks"), false);
  });

  test("mount what the configuration names", () => {
    const mounts = at(container, "volumeMounts") as readonly Mount[];
    const volumes = new Set([
      ...(at(pod, "volumes") as readonly Named[]).map(({ name }) => name),
      ...(at(only("StatefulSet"), "spec", "volumeClaimTemplates") as readonly { metadata: Named }[]).map(
        ({ metadata }) => metadata.name,
      ),
    ]);
    for (const { name } of mounts) ok(volumes.has(name), name);
    const files = [
      config.node.data ?? "",
      config.cluster.secretFile ?? "",
      config.mesh?.keysFile ?? "",
      config.edge.tls?.certificate ?? "",
      config.edge.tls?.key ?? "",
      ...config.edge.identity.tokens.map(({ file }) => file ?? ""),
    ];
    for (const file of files)
      ok(
        mounts.some(({ mountPath }) => `${file}/`.startsWith(`${mountPath}/`)),
        file,
      );
  });

  test("give a node longer to leave than it needs, and take one at a time", () => {
    const [program, seconds] = at(container, "lifecycle", "preStop", "exec", "command") as readonly string[];
    equal(program, "sleep");
    ok(Number(seconds) >= 5, "endpoints hear of it in time");
    const givenMs = (Number(at(pod, "terminationGracePeriodSeconds")) - Number(seconds)) * 1_000;
    ok(givenMs >= config.node.stopWithin + 30_000, "the time before SIGTERM is part of the pod's");
    equal(at(only("PodDisruptionBudget"), "spec", "maxUnavailable"), 1);
    equal(at(only("HorizontalPodAutoscaler"), "spec", "scaleTargetRef", "kind"), "StatefulSet");
  });

  test("are spread over machines, and leave no disks behind except when everything is deleted", () => {
    const [spread] = at(pod, "topologySpreadConstraints") as readonly object[];
    equal(at(spread, "topologyKey"), "kubernetes.io/hostname");
    equal(at(spread, "whenUnsatisfiable"), "ScheduleAnyway");
    deepEqual(at(spread, "labelSelector"), at(only("StatefulSet"), "spec", "selector"));
    const retention = at(only("StatefulSet"), "spec", "persistentVolumeClaimRetentionPolicy");
    deepEqual(retention, { whenScaled: "Delete", whenDeleted: "Retain" });
    ok(config.blobs.kind === "disk" && config.blobs.authoritative, "what is on a disk is elsewhere as well");
  });

  test("run as an unprivileged user", () => {
    equal(at(pod, "securityContext", "runAsNonRoot"), true);
    equal(at(pod, "automountServiceAccountToken"), false);
    deepEqual(at(container, "securityContext", "capabilities", "drop"), ["ALL"]);
    equal(at(container, "securityContext", "allowPrivilegeEscalation"), false);
    equal(at(pod, "securityContext", "fsGroupChangePolicy"), "OnRootMismatch", "modes of files are the node's affair");
  });

  test("probe what a node answers, without credentials", async () => {
    const probes = ["startupProbe", "livenessProbe", "readinessProbe"].map((name) => at(container, name) as Probe);
    for (const { httpGet } of probes) {
      equal(numberOf(httpGet.port), ports.edge);
      equal(httpGet.scheme, config.edge.tls ? "HTTPS" : "HTTP");
    }
    const tokens = [{ name: "op", tenant: "*", roles: ["operator"], sha256: "0".repeat(64) }];
    await using lab = await Lab.open({
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      worker: { enabled: false },
    });
    const origin = `http://127.0.0.1:${lab.node?.edgePorts[0]}`;
    for (const { httpGet } of probes)
      await until(`${httpGet.path} is answered`, async () => (await fetch(`${origin}${httpGet.path}`)).ok);
    await lab.node?.node.leave();
    equal((await fetch(`${origin}/livez`)).status, 200);
    equal((await fetch(`${origin}/readyz`)).status, 503, "one that is drained is sent nothing new");
  });
});

/** Variables that come from elsewhere. */
const made: Readonly<Record<string, string>> = { MILLRACE_JOURNAL_URL: "postgres://millrace@db:5432/millrace" };

describe("the Dockerfile", () => {
  const lines = readFileSync(join(repoRoot, "Dockerfile"), "utf8").replaceAll("\\\n", " ").split("\n");
  const said = (word: string): readonly string[] =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));

  test("runs as a user that is not root, the same as in the manifests", () => {
    deepEqual(said("USER"), ["10001:10001"]);
    const nodes = readFileSync(join(folder, "nodes.yaml"), "utf8");
    match(nodes, /runAsUser: 10001\n/);
  });

  test("exposes the ports that the program listens on", () => {
    deepEqual(said("EXPOSE"), [`${ports.edge}/tcp ${ports.nodes}/tcp ${ports.gossip}/tcp ${ports.gossip}/udp`]);
    match(said("HEALTHCHECK").join(), new RegExp(`127\\.0\\.0\\.1:${ports.edge}/livez`));
  });

  test("copies existing files, and ignores the rest", () => {
    const copied = said("COPY").filter((line) => !line.startsWith("--from="));
    const sources = copied.flatMap((line) => line.split(" ").slice(0, -1));
    ok(sources.length >= 5);
    const ignored = readFileSync(join(repoRoot, ".dockerignore"), "utf8").split("\n");
    for (const source of sources) {
      ok(existsSync(join(repoRoot, source)), source);
      ok(ignored.includes(`!${source}`), `.dockerignore lets ${source} through`);
    }
  });

  test("names only variables that the program knows", () => {
    const known = new Set([...settingsOf(Config).values()].map(({ variable }) => variable));
    for (const [, name] of said("ENV")
      .join(" ")
      .matchAll(/(MILLRACE_\w+)=/g))
      ok(name === "MILLRACE_DATA" || known.has(name), String(name));
  });
});
