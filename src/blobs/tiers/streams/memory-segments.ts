/** Segments in memory, for nodes that keep nothing and for tests. */
import { Fault } from "#base/fault.ts";
import type { Segments } from "./segments.ts";

export function memorySegments(sizeBytesMax: number): Segments {
  const objects = new Map<string, Uint8Array>();
  let usedBytes = 0;
  const remove = (name: string): void => {
    usedBytes -= objects.get(name)?.length ?? 0;
    objects.delete(name);
  };
  const replace = (name: string, bytes: Uint8Array): void => {
    if (usedBytes + bytes.length > sizeBytesMax)
      throw new Fault("exhausted", "append to stream", { sizeBytesMax, why: "there is no memory left for output" });
    remove(name);
    objects.set(name, Uint8Array.from(bytes));
    usedBytes += bytes.length;
  };
  return {
    everyMs: 100,
    async put(name, bytes) {
      if (objects.has(name)) return "present";
      replace(name, bytes);
      return "written";
    },
    replace: async (name, bytes) => replace(name, bytes),
    get: async (name) => objects.get(name),
    remove: async (name) => remove(name),
  };
}
