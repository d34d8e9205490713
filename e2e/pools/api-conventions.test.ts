/**
 * What pools expect of a Kubernetes API server, asked of the double, and of a real one where a developer points at it:
 *
 *   export MILLRACE_KUBERNETES_API=https://127.0.0.1:6443 MILLRACE_KUBERNETES_TOKEN_FILE=token
 *   export MILLRACE_KUBERNETES_CA_FILE=ca.crt MILLRACE_KUBERNETES_NAMESPACE=millrace-runners
 *   node bin/node.js --test e2e/pools/api-conventions.test.ts
 *
 * A kube-apiserver with etcd is enough: no pod has to run. What it makes, it removes.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { openPods } from "#pools/kubernetes/pods.ts";
import type { NewMachine } from "#pools/machine.ts";
import { type KubernetesSettings, PoolsConfig } from "#pools/pool-config.ts";
import { clearAway } from "#testing/clear-away.ts";
import { KubernetesDouble } from "#testing/kubernetes/api-double.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { shippedRules } from "./pool-lab.ts";

type Server = Pick<KubernetesSettings, "api" | "tokenFile" | "namespace"> & { readonly caFile?: string };

async function exercise(server: Server): Promise<void> {
  const [settings] = PoolsConfig.parse([
    {
      kind: "kubernetes",
      name: "conventions",
      ...server,
      server: "https://node.invalid:8980",
      max: 3,
      templates: [
        { runsOn: ["x"], image: "runner.invalid/none:1", tolerations: [{ key: "spot", effect: "NoSchedule" }] },
      ],
    },
  ]);
  const random = new Random("conventions");
  const log: string[] = [];
  const open = () =>
    openPods({
      settings: settings as KubernetesSettings,
      server: "https://node.invalid:8980",
      clock,
      random,
      changed: () => {},
      log: (line) => log.push(line),
    });
  const wanted = (slot: number, nonce: string): NewMachine => ({
    slot,
    template: "default",
    worker: `pool.conventions.${slot}.${nonce}`,
    registration: "r-1",
    token: "a-token",
    task: "t0-1",
  });
  await using maker = await open();
  const wait = { limitMs: 60_000, everyMs: 20 };
  await until(`the pods are listed; ${log.join()}`, () => maker.seen() !== undefined, wait);
  equal(maker.seen()?.length, 0, "the namespace has pods of this pool already");
  const nonce = Date.now().toString(36);
  try {
    ok(await maker.create(wanted(0, nonce)));
    ok(await maker.create(wanted(1, nonce)));
    equal(await maker.create(wanted(0, `${nonce}-2`)), false, "a slot has one pod");
    await using other = await open(); // another node, which knows what the server says
    await until("it sees both", () => other.seen()?.length === 2, wait);
    const [first] = other.seen()?.filter(({ slot }) => slot === 0) ?? [];
    ok(first);
    const { slot, template, worker, registration, hasToken, phase } = first;
    deepEqual(
      { slot, template, worker, registration, hasToken, phase },
      {
        slot: 0,
        template: "default",
        worker: wanted(0, nonce).worker,
        registration: "r-1",
        hasToken: false,
        phase: "starting",
      },
    );
    equal(await other.giveToken(first, "another", "r-2"), false, "its Secret is there");
    ok(Array.isArray(await other.events(first)));
    await other.remove({ ...first, id: "00000000-0000-0000-0000-000000000000" });
    equal(other.seen()?.length, 2, "a pod is removed by its uid");
    await other.remove(first);
    await until("both nodes see that it is gone", () => [maker, other].every((one) => one.seen()?.length === 1), wait);
    ok(await maker.create(wanted(0, `${nonce}-3`)), "its slot is free");
  } finally {
    for (const machine of maker.seen() ?? []) await maker.remove(machine);
    await until("all are gone", () => maker.seen()?.length === 0, { ...wait, limitMs: 90_000 });
  }
}

test("the double keeps the conventions", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-conventions-"));
  const namespace = "millrace-runners";
  await using api = new KubernetesDouble({ namespace, token: "t", rules: shippedRules() });
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "t\n");
  await exercise({ api: await api.listen(), tokenFile, namespace });
  equal(api.secrets.size, 0, "Secrets went with their pods");
  clearAway(folder);
});

const {
  MILLRACE_KUBERNETES_API: api,
  MILLRACE_KUBERNETES_TOKEN_FILE: tokenFile = "",
  MILLRACE_KUBERNETES_CA_FILE: caFile,
  MILLRACE_KUBERNETES_NAMESPACE: namespace = "millrace-runners",
} = process.env;
const skip = api === undefined && "needs kubernetes: set MILLRACE_KUBERNETES_API";

test("so does the API server that a developer points at", { skip, timeout: 240_000 }, async () => {
  await exercise({ api: api ?? "", tokenFile, namespace, ...(caFile !== undefined && { caFile }) });
});
