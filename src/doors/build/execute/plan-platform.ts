/** Turns an action's platform into labels that a worker must offer, and limits that the worker applies. Pure. */
import { parseSizeBytes } from "#base/units.ts";
import type { Action, Command, Platform } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { shown } from "#doors/build/digests.ts";
import type { ExecutionSettings } from "./execution-settings.ts";
import { invalid } from "#doors/build/refusals.ts";

export type Demands = {
  /** Sorted, each once. */
  readonly labels: readonly string[];
  readonly network: boolean;
  /** 0: no limit. */
  readonly memoryBytes: number;
  /** Number of processors; 0: no limit. */
  readonly cpus: number;
  /** The tool that it runs may be reused for other actions. */
  readonly tool: ToolDemand | undefined;
  /** It gets the node's address and a token of its claim. */
  readonly credential: boolean;
};

/** In Bazel's terms: a key for the tool with all its files, and its protocol. */
export type ToolDemand = { readonly key: string; readonly protocol: "proto" | "json" };

const poolDefault = "default";

export function poolLabel(pool: string): string {
  return `pool=${pool || poolDefault}`;
}

/** Well-known property names, and the labels that workers have for their values. */
const wellKnown: Readonly<Record<string, (value: string) => string>> = {
  OSFamily: (value) => `os=${value.toLowerCase()}`,
  ISA: (value) => `arch=${architectures[value.toLowerCase()] ?? value.toLowerCase()}`,
  Arch: (value) => `arch=${architectures[value.toLowerCase()] ?? value.toLowerCase()}`,
  Pool: poolLabel,
  pool: poolLabel,
  sandbox: (value) => `sandbox=${value}`,
};

const architectures: Readonly<Record<string, string>> = {
  "x86-64": "x64",
  x86_64: "x64",
  amd64: "x64",
  "arm-a64": "arm64",
  aarch64: "arm64",
};

const switchValues: ReadonlyMap<string, boolean> = new Map([
  ["on", true],
  ["standard", true],
  ["off", false],
]);

const labelLengthMax = 200;

/** REAPI-60: the action's platform counts; the command's only if the action has none. */
export const platformOf = (action: Action, command: Command): Platform | undefined =>
  action.platform ?? command.platform;

/** REAPI-59: an unknown property is refused, not ignored. */
export function demandsOf(platform: Platform | undefined, settings: ExecutionSettings): Demands {
  const labels = new Set<string>();
  let network = false;
  let memoryBytes = settings.memoryBytesDefault;
  let cpus = 0;
  let key = "";
  let protocol: ToolDemand["protocol"] = "proto";
  let credential = false;
  for (const { name, value } of platform?.properties ?? []) {
    const label = Object.hasOwn(wellKnown, name) ? wellKnown[name] : undefined;
    if (label) labels.add(checkedLabel(label(value)));
    else if (settings.properties.includes(name)) labels.add(checkedLabel(`${name}=${value}`));
    else if (settings.ignoredProperties.includes(name)) continue;
    else if (name === "network" || name === "dockerNetwork") network = isOn(name, value);
    else if (name === "taskCredential") credential = isOn(name, value);
    else if (name === "memory") memoryBytes = memoryOf(value);
    else if (name === "cpu") cpus = cpusOf(value);
    else if (name === "persistentWorkerKey") key = keyOf(value);
    else if (name === "persistentWorkerProtocol") protocol = protocolOf(value);
    else throw unknownProperty(name, settings);
  }
  // Actions without a pool run in the default pool, not in special ones.
  if (!labels.values().some(isPool)) labels.add(poolLabel(poolDefault));
  // A tool that stays is for more than one action, and a token for one.
  const tool = key === "" || credential ? undefined : { key, protocol };
  return { labels: [...labels].toSorted(byCode), network, memoryBytes, cpus, tool, credential };
}

const isPool = (label: string): boolean => label.startsWith("pool=");

function keyOf(value: string): string {
  if (value.length > labelLengthMax) throw invalid("platform property persistentWorkerKey is longer than keys are");
  return value;
}

function protocolOf(value: string): ToolDemand["protocol"] {
  if (value !== "proto" && value !== "json")
    throw invalid(`platform property persistentWorkerProtocol is proto or json, not ${shown(value)}`);
  return value;
}

function isOn(name: string, value: string): boolean {
  const wanted = switchValues.get(value);
  if (wanted === undefined) throw invalid(`platform property ${name} is on or off, not ${shown(value)}`);
  return wanted;
}

function memoryOf(value: string): number {
  const bytes = parseSizeBytes(value);
  if (bytes === undefined) throw invalid(`platform property memory is a size such as 2GiB, not ${shown(value)}`);
  return bytes;
}

function cpusOf(value: string): number {
  if (!/^\d{1,4}(\.\d{1,3})?$/.test(value) || Number(value) === 0)
    throw invalid(`platform property cpu is a number such as 2 or 0.5, not ${shown(value)}`);
  return Number(value);
}

function checkedLabel(label: string): string {
  if (label.length > labelLengthMax || /[\s\p{Cc}]/u.test(label))
    throw invalid(`not a value for a platform property: ${shown(label)}`);
  return label;
}

function unknownProperty(name: string, { properties }: ExecutionSettings) {
  const own = ["network", "memory", "cpu", "persistentWorkerKey", "taskCredential"];
  const known = [...Object.keys(wellKnown), ...properties, ...own].join(", ");
  return invalid(
    `unknown platform property ${shown(name)}; known are ${known}; ` +
      "build.properties adds to them, and build.ignoreProperties says which mean nothing",
  );
}

export const byCode = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
