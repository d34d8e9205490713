/** The pod of a job and the Secret with its token, as manifests. Pure. */
import { createHash } from "node:crypto";
import type { NewMachine } from "#pools/machine.ts";
import type { KubernetesSettings, PodTemplateSettings } from "#pools/pool-config.ts";

/** What pods are found by, and what they tell of themselves. */
export const labels = {
  pool: "millrace/pool",
  slot: "millrace/slot",
  template: "millrace/template",
  egress: "millrace/egress",
} as const;
export const annotations = {
  worker: "millrace/worker",
  registration: "millrace/registration",
  secret: "millrace/secret",
  /** The task that asked for the pod. */
  task: "millrace/asked-by",
} as const;

/** Of all pods of the pool, and of nothing else in the namespace. */
export const selectorOf = ({ name }: Pick<KubernetesSettings, "name">): string => `${labels.pool}=${name}`;

/** A pod's name is its slot's, so the API server itself refuses a second one. */
export const podName = (pool: string, slot: number): string => `millrace-${pool}-${slot}`;

/** Of one pod alone: the slot's next pod has another Secret. */
export const secretName = ({ slot, worker }: Pick<NewMachine, "slot" | "worker">, pool: string): string =>
  `${podName(pool, slot)}-${createHash("sha256").update(worker).digest("hex").slice(0, 10)}`;

const tokenFolder = "/run/millrace";
const workFolder = "/work";

export function podOf(pool: KubernetesSettings, template: PodTemplateSettings, wanted: NewMachine, server: string) {
  const { nodeSelector, tolerations, pullSecret, serviceAccount } = template;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: metadataOf(pool, template, wanted),
    spec: {
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: Math.ceil(pool.stopWithin / 1_000) + 30,
      activeDeadlineSeconds: Math.ceil(pool.life / 1_000),
      ...(serviceAccount !== undefined && { serviceAccountName: serviceAccount }),
      ...(pullSecret !== undefined && { imagePullSecrets: [{ name: pullSecret }] }),
      nodeSelector: { "kubernetes.io/os": "linux", "kubernetes.io/arch": kubeArch[template.arch], ...nodeSelector },
      ...(tolerations.length > 0 && { tolerations: tolerations.map((one) => tolerationOf(one)) }),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 10_001,
        runAsGroup: 10_001,
        fsGroup: 10_001,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [containerOf(pool, template, server)],
      volumes: volumesOf(pool, template, wanted),
    },
  };
}

const metadataOf = (pool: KubernetesSettings, template: PodTemplateSettings, wanted: NewMachine) => ({
  name: podName(pool.name, wanted.slot),
  labels: {
    "app.kubernetes.io/name": "millrace-runner",
    [labels.pool]: pool.name,
    [labels.slot]: String(wanted.slot),
    [labels.template]: template.name,
    [labels.egress]: template.egress,
  },
  annotations: {
    [annotations.worker]: wanted.worker,
    [annotations.registration]: wanted.registration,
    [annotations.secret]: secretName(wanted, pool.name),
    ...(wanted.task !== undefined && { [annotations.task]: wanted.task }),
    // A cluster autoscaler must not take a machine away under a job.
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
  },
});

const layersFolder = "/var/lib/containers";

function containerOf(pool: KubernetesSettings, template: PodTemplateSettings, server: string) {
  const { cpu, memory, disk, image, cacheClaim } = template;
  const limits = { memory: String(memory), "ephemeral-storage": String(disk) };
  return {
    name: "runner",
    image,
    imagePullPolicy: "IfNotPresent",
    args: argsOf(pool, template, server),
    env: [
      { name: "HOME", value: workFolder },
      { name: "TMPDIR", value: workFolder },
    ],
    workingDir: workFolder,
    resources: { requests: { cpu, ...limits }, limits },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    volumeMounts: [
      { name: "token", mountPath: tokenFolder, readOnly: true },
      { name: "work", mountPath: workFolder },
      ...(cacheClaim === undefined ? [] : [{ name: "cache", mountPath: layersFolder }]),
    ],
  };
}

const volumesOf = (pool: KubernetesSettings, { disk, cacheClaim }: PodTemplateSettings, wanted: NewMachine) => [
  { name: "token", secret: { secretName: secretName(wanted, pool.name), defaultMode: 0o440 } },
  { name: "work", emptyDir: { sizeLimit: String(disk) } },
  ...(cacheClaim === undefined ? [] : [{ name: "cache", persistentVolumeClaim: { claimName: cacheClaim } }]),
];

const kubeArch = { x64: "amd64", arm64: "arm64" } as const;

/** What the container is started with: `millrace` is the image's entry point. */
const argsOf = (pool: KubernetesSettings, { runsOn, labels: more }: PodTemplateSettings, server: string) => {
  const words = {
    server,
    "token-file": `${tokenFolder}/token`,
    data: `${workFolder}/runner`,
    labels: [...runsOn, ...more].join(","),
    "stop-within": `${Math.ceil(pool.stopWithin / 1_000)}s`,
  };
  return ["runner", ...Object.entries(words).flatMap(([flag, value]) => [`--${flag}`, value])];
};

const tolerationOf = ({ key, value, effect }: PodTemplateSettings["tolerations"][number]) => ({
  key,
  operator: value === undefined ? "Exists" : "Equal",
  ...(value !== undefined && { value }),
  ...(effect !== undefined && { effect }),
});

/** Kubernetes removes it with its pod, so the node needs no right to read, list or delete Secrets. */
export const secretOf = (
  pod: { readonly name: string; readonly uid: string },
  { name, token }: { readonly name: string; readonly token: string },
) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name,
    labels: { "app.kubernetes.io/name": "millrace-runner" },
    ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: pod.name, uid: pod.uid }],
  },
  type: "Opaque",
  immutable: true,
  stringData: { token },
});
