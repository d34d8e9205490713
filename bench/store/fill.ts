/** Fills a store and dies without closing it, for bench/store/store.ts: `fill.ts FOLDER COUNT BYTES`. */
import { openDiskStore } from "#blobs/disk/open.ts";
import { systemClock } from "#door/system-clock.ts";
import { lanes, smallBlob } from "./blobs.ts";

const [folder = "", count = "0", sizeBytes = "0"] = process.argv.slice(2);
const store = await openDiskStore(folder, { clock: systemClock, sizeBytesMax: 16 * 1024 ** 3 });
const { blobs } = store.forTenant("bench");
await lanes(Number(count), 256, async (number) => {
  const { digest, bytes } = smallBlob(number, Number(sizeBytes));
  await blobs.write(digest, bytes);
});
process.kill(process.pid, "SIGKILL");
