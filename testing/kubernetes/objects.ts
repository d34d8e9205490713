/**
 * What the API server of the double takes for a pod or a Secret: as strict as the real one with
 * fieldValidation=Strict.
 */
import { z } from "zod";

const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
const key = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const quantity = z.string().regex(/^\d+(?:\.\d+)?(?:m|k|Ki|M|Mi|G|Gi|T|Ti)?$/);
const Quantities = z.partialRecord(z.enum(["cpu", "memory", "ephemeral-storage"]), quantity);
const DnsName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/, "must be a lowercase RFC 1123 subdomain");

const Meta = z.strictObject({
  name: DnsName,
  namespace: z.string().optional(),
  labels: z.record(z.string().regex(key), z.string().regex(labelValue)).optional(),
  annotations: z.record(z.string().regex(key), z.string()).optional(),
  ownerReferences: z
    .array(z.strictObject({ apiVersion: z.string(), kind: z.string(), name: z.string(), uid: z.string() }))
    .optional(),
});

const Container = z.strictObject({
  name: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  image: z.string().min(1),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).optional(),
  args: z.array(z.string()).optional(),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
  workingDir: z.string().optional(),
  resources: z.strictObject({ requests: Quantities.optional(), limits: Quantities.optional() }).optional(),
  securityContext: z
    .strictObject({
      allowPrivilegeEscalation: z.boolean(),
      capabilities: z.strictObject({ drop: z.array(z.string()) }),
    })
    .optional(),
  volumeMounts: z
    .array(z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() }))
    .optional(),
});

const Volume = z.union([
  z.strictObject({
    name: z.string(),
    secret: z.strictObject({ secretName: DnsName, defaultMode: z.int().min(0).max(0o777) }),
  }),
  z.strictObject({ name: z.string(), emptyDir: z.strictObject({ sizeLimit: quantity.optional() }) }),
  z.strictObject({ name: z.string(), persistentVolumeClaim: z.strictObject({ claimName: DnsName }) }),
]);

const PodSpec = z
  .strictObject({
    restartPolicy: z.enum(["Always", "OnFailure", "Never"]),
    automountServiceAccountToken: z.boolean().optional(),
    enableServiceLinks: z.boolean().optional(),
    terminationGracePeriodSeconds: z.int().min(0),
    activeDeadlineSeconds: z.int().min(1).optional(),
    serviceAccountName: DnsName.optional(),
    imagePullSecrets: z.array(z.strictObject({ name: DnsName })).optional(),
    nodeSelector: z.record(z.string(), z.string().regex(labelValue)).optional(),
    tolerations: z
      .array(
        z.strictObject({
          key: z.string(),
          operator: z.enum(["Exists", "Equal"]),
          value: z.string().optional(),
          effect: z.string().optional(),
        }),
      )
      .optional(),
    securityContext: z
      .strictObject({
        runAsNonRoot: z.boolean(),
        runAsUser: z.int(),
        runAsGroup: z.int(),
        fsGroup: z.int(),
        seccompProfile: z.strictObject({ type: z.string() }),
      })
      .optional(),
    containers: z.array(Container).min(1),
    volumes: z.array(Volume).optional(),
  })
  .refine(
    ({ containers, volumes = [] }) =>
      containers.every(({ volumeMounts = [] }) =>
        volumeMounts.every((m) => volumes.some(({ name }) => name === m.name)),
      ),
    "spec.containers[0].volumeMounts: Not found",
  );

export const PodBody = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("Pod"),
  metadata: Meta,
  spec: PodSpec,
});

export const SecretBody = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("Secret"),
  metadata: Meta,
  type: z.string(),
  immutable: z.boolean().optional(),
  stringData: z.record(z.string(), z.string()),
});

export const DeleteOptions = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("DeleteOptions"),
  gracePeriodSeconds: z.int().min(0).optional(),
  preconditions: z.strictObject({ uid: z.string() }).optional(),
});

type Kept = { uid: string; resourceVersion: string; creationTimestamp: string };

export type PodObject = z.output<typeof PodBody> & {
  metadata: z.output<typeof Meta> & Kept & { deletionTimestamp?: string; deletionGracePeriodSeconds?: number };
  spec: { nodeName?: string };
  status: PodStatus;
};
export type SecretObject = Omit<z.output<typeof SecretBody>, "metadata"> & { metadata: z.output<typeof Meta> & Kept };

export type PodStatus = {
  phase: "Pending" | "Running" | "Succeeded" | "Failed";
  reason?: string;
  message?: string;
  conditions?: { type: string; status: "True" | "False"; reason?: string; message?: string }[];
  containerStatuses?: {
    name: string;
    ready: boolean;
    restartCount: number;
    image: string;
    state: {
      waiting?: { reason: string; message?: string };
      running?: { startedAt: string };
      terminated?: { reason: string; exitCode: number };
    };
  }[];
};

export type EventObject = {
  readonly uid: string;
  readonly reason: string;
  readonly message: string;
  readonly type: "Normal" | "Warning";
  readonly lastTimestamp: string;
};
