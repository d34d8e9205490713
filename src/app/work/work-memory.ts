/**
 * How much memory the work of this node may take, from what its process really has: the limit of V8's heap, and that
 * of the container around it. Whoever gives the process more memory need not say so here.
 */
import { getHeapStatistics } from "node:v8";
import type { Limits } from "#kernel/model/limits.ts";
import { defaultHostSettings, type HostSettings } from "#shard/host/settings.ts";
import { machineBytes } from "#worker/sandbox/machine-bytes.ts";

const KiB = 1024;
const MiB = KiB * KiB;

/** The program by itself, before it has any work. */
const ownBytes = 64 * MiB;
/**
 * The share of the heap for work. Results of accepted work may need half as much again (kernel/memory/memory.ts); the
 * rest is for requests in flight, buffers, and the garbage collector, which slows down when little is free.
 */
const workShare = 0.4;
/** A container also holds what lies outside the heap: buffers, threads, code. */
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

/** Limits of one shard that depend on memory, where all shards may come to be on this node. */
export const memoryLimits = (workBytes: number, shards: number): Pick<Limits, "keyBytesInMemoryMax"> => ({
  keyBytesInMemoryMax: clamp(workBytes / 8 / shards, 256 * KiB, 64 * MiB),
});

/** How much may be under way at once. */
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

/** Messages that callers have begun to send, of all connections. They lie outside the heap, in the same container. */
export const bodyBytesMax = (memory: ProcessMemory): number => clamp(heapOf(memory) / 8, 32 * MiB, 512 * MiB);

const clamp = (value: number, min: number, max: number): number => Math.floor(Math.min(max, Math.max(min, value)));
