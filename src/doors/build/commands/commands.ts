/** The commands of this door, in the order of help. */
import { buildCancel, buildGet, buildList, buildShow, buildWatch } from "./build-look.ts";
import { buildSubmit } from "./build-submit.ts";
import { cacheGet, cachePut } from "./cache-blob.ts";
import { cacheList } from "./cache-list.ts";
import { cacheRevoke } from "./cache-revoke.ts";
import { cacheStat } from "./cache-stat.ts";
import { cacheGc, cacheVerify } from "./cache-upkeep.ts";
import { cacheWhy } from "./cache-why.ts";

export const commands = [
  buildSubmit,
  buildList,
  buildShow,
  buildWatch,
  buildGet,
  buildCancel,
  cacheStat,
  cacheList,
  cacheGet,
  cachePut,
  cacheWhy,
  cacheRevoke,
  cacheGc,
  cacheVerify,
];
