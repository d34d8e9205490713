/** For tests: the scheduler and the kubelets of a Kubernetes double. What a pod runs is the test's to say. */
import type { KubernetesDouble, PodRunner } from "./api-double.ts";
import type { PodObject, PodStatus } from "./objects.ts";

export type RunningPod = { readonly ended: Promise<number>; kill(signal: "SIGTERM" | "SIGKILL"): void };

export type NodesOptions = {
  readonly api: KubernetesDouble;
  /** Starts what the pod's container runs. */
  readonly run: (pod: PodObject, token: string) => RunningPod;
  /** Images that can be pulled. */
  readonly images: ReadonlySet<string>;
  /** Labels of the machines. */
  readonly labels?: Readonly<Record<string, string>>;
  /** How long scheduling and pulling take. */
  readonly startMs?: number;
  readonly podsMax?: number;
};

type Stage = "waiting" | "pulling" | "running" | "over";
type Known = {
  pod: PodObject;
  stage: Stage;
  process?: RunningPod;
  timers: NodeJS.Timeout[];
  killed?: "oom" | "evicted";
};

const secondMs = 1_000;

export class NodesDouble implements PodRunner, AsyncDisposable {
  readonly #options: Required<NodesOptions>;
  readonly #known = new Map<string, Known>();

  constructor(options: NodesOptions) {
    this.#options = { startMs: 0, podsMax: Infinity, labels: {}, ...options };
    options.api.runner = this;
  }

  get running(): number {
    return [...this.#known.values()].filter(({ stage }) => stage === "running").length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { process, timers } of this.#known.values()) {
      timers.forEach(clearTimeout);
      process?.kill("SIGKILL");
    }
    await Promise.all([...this.#known.values()].flatMap(({ process }) => (process ? [process.ended] : [])));
  }

  created(pod: PodObject): void {
    const known: Known = { pod, stage: "waiting", timers: [] };
    this.#known.set(pod.metadata.uid, known);
    this.#later(known, this.#options.startMs, () => this.#schedule(known));
  }

  secretCreated(): void {
    for (const known of this.#known.values()) if (known.stage === "pulling") this.#start(known);
  }

  terminate({ metadata: { uid } }: PodObject, graceSeconds: number): void {
    const known = this.#known.get(uid);
    if (!known) return;
    if (known.process && known.stage === "running") {
      if (graceSeconds === 0) return known.process.kill("SIGKILL");
      known.process.kill("SIGTERM");
      return this.#later(known, graceSeconds * secondMs, () => known.process?.kill("SIGKILL"));
    }
    this.#over(known);
    this.#options.api.removed(uid);
  }

  /** The kernel kills what uses too much memory. */
  outOfMemory(name: string): void {
    this.#kill(name, "oom");
  }

  /** The kubelet needs the memory or the disk for others. */
  evict(name: string): void {
    this.#kill(name, "evicted");
  }

  #kill(name: string, killed: NonNullable<Known["killed"]>): void {
    const known = [...this.#known.values()].find(({ pod, stage }) => pod.metadata.name === name && stage === "running");
    if (!known?.process) throw new Error(`no running pod ${name}`);
    known.killed = killed;
    known.process.kill("SIGKILL");
  }

  #later(known: Known, ms: number, run: () => void): void {
    known.timers.push(setTimeout(run, ms));
  }

  #schedule(known: Known): void {
    const { api, labels, podsMax } = this.#options;
    const { metadata, spec } = known.pod;
    const missing = Object.entries({ ...spec.nodeSelector }).filter(
      ([key, value]) => !key.startsWith("kubernetes.io/") && labels[key] !== value,
    );
    const placed = [...this.#known.values()].filter(({ stage }) => stage === "pulling" || stage === "running").length;
    if (missing.length > 0 || placed >= podsMax) {
      const why = missing.length > 0 ? "node(s) didn't match Pod's node affinity/selector" : "Too many pods";
      const message = `0/1 nodes are available: 1 ${why}.`;
      api.setStatus(metadata.uid, {
        phase: "Pending",
        conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
      });
      api.event(metadata.uid, "Warning", "FailedScheduling", message);
      if (missing.length === 0) this.#later(known, 100, () => known.stage === "waiting" && this.#schedule(known));
      return;
    }
    api.event(metadata.uid, "Normal", "Scheduled", `Successfully assigned ${metadata.name} to node-1`);
    known.stage = "pulling";
    const image = spec.containers[0]?.image ?? "";
    if (!this.#options.images.has(image)) {
      const message = `Back-off pulling image "${image}": not found`;
      api.event(metadata.uid, "Warning", "Failed", `Failed to pull image "${image}": not found`);
      return api.setStatus(
        metadata.uid,
        this.#status(known, { waiting: { reason: "ImagePullBackOff", message } }),
        "node-1",
      );
    }
    api.setStatus(metadata.uid, this.#status(known, { waiting: { reason: "ContainerCreating" } }), "node-1");
    this.#start(known);
  }

  /** Once its Secret is there: until then the volume cannot be mounted. */
  #start(known: Known): void {
    const { api, run } = this.#options;
    const { metadata, spec } = known.pod;
    const name = spec.volumes?.flatMap((volume) => ("secret" in volume ? [volume.secret.secretName] : []))[0] ?? "";
    const secret = api.secrets.get(name);
    if (!secret) return api.event(metadata.uid, "Warning", "FailedMount", `secret "${name}" not found`);
    if (!this.#options.images.has(spec.containers[0]?.image ?? "")) return;
    known.stage = "running";
    known.process = run(known.pod, secret.stringData["token"] ?? "");
    api.setStatus(metadata.uid, this.#status(known, { running: { startedAt: new Date().toISOString() } }), "node-1");
    void known.process.ended.then((code) => this.#ended(known, code));
  }

  #ended(known: Known, exitCode: number): void {
    const { api } = this.#options;
    const { uid, name } = known.pod.metadata;
    const { killed } = known;
    const reason = killed === "oom" ? "OOMKilled" : exitCode === 0 ? "Completed" : "Error";
    const status = this.#status(known, { terminated: { reason, exitCode: killed ? 137 : exitCode } });
    this.#over(known);
    if (killed === "evicted") {
      status.reason = "Evicted";
      status.message = "The node was low on resource: memory.";
      api.event(uid, "Warning", "Evicted", status.message);
    }
    api.setStatus(uid, status);
    if (api.pods.get(name)?.metadata.deletionTimestamp !== undefined) api.removed(uid);
  }

  #over(known: Known): void {
    known.stage = "over";
    known.timers.forEach(clearTimeout);
    this.#known.delete(known.pod.metadata.uid);
  }

  #status({ pod }: Known, state: NonNullable<PodStatus["containerStatuses"]>[number]["state"]): PodStatus {
    const { name = "", image = "" } = pod.spec.containers[0] ?? {};
    const { terminated, running } = state;
    const phase = terminated ? (terminated.exitCode === 0 ? "Succeeded" : "Failed") : running ? "Running" : "Pending";
    return {
      phase,
      conditions: [{ type: "PodScheduled", status: "True" }],
      containerStatuses: [{ name, image, ready: running !== undefined, restartCount: 0, state }],
    };
  }
}
