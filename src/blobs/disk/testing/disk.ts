/** For tests: stores in folders that go away again. */
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
  /** As after a restart; the options given replace those it had. */
  reopen(options?: Partial<OpenDisk>): Promise<DiskStore>;
  dispose(): Promise<void>;
};

/** Real time passes by itself and timers never fire: nothing happens that a test did not ask for. */
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
