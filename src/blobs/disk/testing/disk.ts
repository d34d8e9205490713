/** For tests: stores in temporary folders. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import type { Clock } from "#base/clock.ts";
import { openDiskStore, type DiskStore, type OpenDisk } from "#blobs/disk/open.ts";

export type DiskRig = {
  readonly root: string;
  readonly clock: Clock;
  store: DiskStore;
  /** Opens the store again, as after a restart; the given options replace the earlier ones. */
  reopen(options?: Partial<OpenDisk>): Promise<DiskStore>;
  dispose(): Promise<void>;
};

/** Real time, but timers never fire: nothing happens that the test did not start. */
export const quietClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: () => new Promise(() => {}),
  after: () => () => {},
};

export async function diskRig(options: Partial<OpenDisk> = {}): Promise<DiskRig> {
  const root = await mkdtemp(join(tmpdir(), "millrace-store-"));
  const clock = options.clock ?? quietClock;
  const open = (more: Partial<OpenDisk> = {}): Promise<DiskStore> =>
    openDiskStore(root, {
      sizeBytesMax: 256 * 1024 * 1024,
      memoryBytesMax: 8 * 1024 * 1024,
      ...options,
      ...more,
      clock,
    });
  const rig: DiskRig = {
    root,
    clock,
    store: await open(),
    async reopen(more) {
      await rig.store.close();
      rig.store = await open(more);
      return rig.store;
    },
    async dispose() {
      await rig.store.close();
      await rm(root, { recursive: true });
    },
  };
  return rig;
}
