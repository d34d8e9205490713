/**
 * How much memory the work of this node may use, derived from what its process has: the limit of V8's heap, and that of
 * its container. No setting needs to change when the process gets more memory.
 */
import { getHeapStatistics } from "node:v8";
import type { Limits } from "#kernel/model/limits.ts";
import { defaultHostSettings, type HostSettings } from "#shard/host/settings.ts";
import { machineBytes } from "#worker/sandbox/machine-bytes.ts";

const KiB = 1024;
const MiB = KiB * KiB;

/** The program itself, without any work. */
const ownBytes = 64 * MiB;
/**
 * The share of the heap for work. Results of accepted work may need half as much again (kernel/memory/memory.ts); the
 * rest is for requests in flight, buffers, and the garbage collector, which slows down when little is free.
 */
const workShare = 0.4;
/** A container also holds memory outside the heap: buffers, threads, code. */
const heapShareOfMachine = 0.75;
const workBytesMin = 8 * MiB;

export type ProcessMemory = { readonly heapBytesMax: number; readonly machineBytes: number };

export const processMemory = (): ProcessMemory => ({
  heapBytesMax: getHeapStatistics().heap_size_limit,
  machineBytes: machineBytes(),
});

const heapOf = ({ heapBytesMax, machineBytes: machine }: ProcessMemory): number =>
  Math.min(heapBytesMax, machine * heapShareOfMachine);

/** For jobs that have not ended, in all shards of the node. */
export const workBytesMax = (memory: ProcessMemory): number =>
  Math.max(workBytesMin, Math.floor((heapOf(memory) - ownBytes) * workShare));

/** Limits of one shard that depend on memory, for the case that all shards are on this node. */
export const memoryLimits = (workBytes: number, shards: number): Pick<Limits, "keyBytesInMemoryMax"> => ({
  keyBytesInMemoryMax: clamp(workBytes / 8 / shards, 256 * KiB, 64 * MiB),
});

/** How much may be in progress at once. */
export function memorySettings(memory: ProcessMemory, shards: number): Partial<HostSettings> {
  const heap = heapOf(memory);
  const { requestBytesMax, nodeRequestBytesMax, ringBytesMax } = defaultHostSettings;
  return {
    requestBytesMax: clamp(heap / 32, 4 * MiB, requestBytesMax),
    nodeRequestBytesMax: clamp(heap / 16, 8 * MiB, nodeRequestBytesMax),
    heldBytesMax: clamp(heap / 32, 4 * MiB, 64 * MiB),
    nodeUnreadBytesMax: clamp(heap / 32, 4 * MiB, 64 * MiB),
    ringBytesMax: clamp(heap / 32 / shards, 32 * KiB, ringBytesMax),
  };
}

/** Incomplete messages of callers, over all connections. They are outside the heap, in the same container. */
export const bodyBytesMax = (memory: ProcessMemory): number => clamp(heapOf(memory) / 8, 32 * MiB, 512 * MiB);

const clamp = (value: number, min: number, max: number): number => Math.floor(Math.min(max, Math.max(min, value)));
