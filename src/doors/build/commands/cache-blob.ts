import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isDigest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { formatSize } from "#base/units.ts";
import { cacheFlags, CacheServer } from "./cache-server.ts";
import { command } from "#door/command.ts";

export const cacheGet = command({
  name: "cache get",
  about: "Fetch a blob by its digest, to a file or to the standard output.",
  words: "<digest> [file]",
  positionalsMax: 2,
  takesRest: false,
  flags: cacheFlags,
  examples: ["millrace cache get 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae/3 foo.txt"],
  async run({ positionals: [digest = "", path], values }, world) {
    if (!isDigest(digest)) {
      world.note("cache get: name a blob as HASH/SIZE or FUNCTION:HASH/SIZE");
      return 2;
    }
    const { body } = await (await CacheServer.find(values, world)).ask("GET", `blobs/${digest}`);
    const source = body ? Readable.fromWeb(body) : Readable.from([]);
    if (path === undefined) await pipeline(source, process.stdout, { end: false });
    else await pipeline(source, createWriteStream(path));
    return 0;
  },
});

export const cachePut = command({
  name: "cache put",
  about: "Store a file under the digest of its bytes, and say the digest.",
  words: "<file>",
  positionalsMax: 1,
  takesRest: false,
  flags: cacheFlags,
  examples: ["millrace cache put toolchain.tar"],
  async run({ positionals: [path], values }, world) {
    if (path === undefined) {
      world.note("cache put: name a file");
      return 2;
    }
    const { size } = await stat(path).catch((error: unknown) => {
      throw new Fault("not-found", "read file", { path }, error);
    });
    const hash = createHash("sha256");
    for await (const part of createReadStream(path)) hash.update(part as Buffer);
    const digest = `${hash.digest("hex")}/${size}`;
    const body = Readable.toWeb(createReadStream(path)) as ReadableStream;
    await (await CacheServer.find(values, world)).ask("PUT", `blobs/${digest}`, { body });
    world.out(values.json ? JSON.stringify({ digest, path }) : `${digest}  ${formatSize(size)}  ${path}`);
    return 0;
  },
});
