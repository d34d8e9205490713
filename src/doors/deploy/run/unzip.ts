/**
 * Unpacks a zip archive, as CI keeps artifacts, into a folder.
 *
 * UZ1 No entry is written outside of the folder, and none is a link.
 * UZ2 Entries and bytes are bounded, by what comes out and not by what the archive says.
 */
import { createWriteStream } from "node:fs";
import { chmod, mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createInflateRaw } from "node:zlib";
import { Fault } from "#base/fault.ts";

export type UnzipLimits = { readonly entriesMax: number; readonly bytesMax: number };

const endBytes = 22;
const commentBytesMax = 65_535;
const directoryBytesMax = 256 * 1024 * 1024;
const whole32 = 0xff_ff_ff_ff;

type Entry = {
  readonly path: string;
  readonly method: number;
  readonly mode: number;
  readonly packedBytes: number;
  readonly offset: number;
};

export async function unzip(archive: string, folder: string, { entriesMax, bytesMax }: UnzipLimits): Promise<void> {
  await using file = await open(archive, "r");
  const entries = entriesIn(await directoryOf(file), entriesMax);
  let left = bytesMax;
  for (const entry of entries) {
    const to = join(folder, entry.path);
    if (entry.path.endsWith("/")) {
      await mkdir(to, { recursive: true });
      continue;
    }
    await mkdir(dirname(to), { recursive: true });
    left -= await extract(file, entry, to, left).catch((error: unknown) => {
      const code = String((error as NodeJS.ErrnoException).code);
      if (code === "EEXIST") throw wrong(`two entries have the path ${entry.path}`);
      throw code.startsWith("Z_") ? wrong(`${entry.path} is damaged`) : error;
    });
    if ((entry.mode & 0o111) !== 0) await chmod(to, 0o755);
  }
}

/** The central directory: found from the end of the file. */
async function directoryOf(file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat();
  const tail = await read(
    file,
    Math.max(0, size - endBytes - commentBytesMax - 20),
    Math.min(size, endBytes + commentBytesMax + 20),
  );
  const at = tail.lastIndexOf(Buffer.from("PK\u0005\u0006"));
  if (at < 0 || at + endBytes > tail.length) throw wrong("it has no directory");
  let bytes = tail.readUInt32LE(at + 12);
  let offset = tail.readUInt32LE(at + 16);
  if (bytes === whole32 || offset === whole32) {
    const locator = tail.subarray(Math.max(0, at - 20), at);
    if (locator.length < 20 || locator.readUInt32LE(0) !== 0x07_06_4b_50) throw wrong("its end is damaged");
    const end = await read(file, Number(locator.readBigUInt64LE(8)), 56);
    bytes = Number(end.readBigUInt64LE(40));
    offset = Number(end.readBigUInt64LE(48));
  }
  if (bytes > directoryBytesMax || offset + bytes > size) throw wrong("its directory is too long");
  return await read(file, offset, bytes);
}

function entriesIn(directory: Buffer, entriesMax: number): readonly Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at + 46 <= directory.length && directory.readUInt32LE(at) === 0x02_01_4b_50;) {
    if (entries.length >= entriesMax) throw wrong(`it has more than ${entriesMax} entries`);
    const [nameBytes, extraBytes] = [directory.readUInt16LE(at + 28), directory.readUInt16LE(at + 30)];
    const path = directory.toString("utf8", at + 46, at + 46 + nameBytes);
    const mode = directory.readUInt32LE(at + 38) >>> 16;
    if (!isSafe(path)) throw wrong(`the path ${JSON.stringify(path.slice(0, 200))} leaves the folder`);
    if ((mode & 0o170_000) === 0o120_000) throw wrong(`${path} is a link`);
    const extra = directory.subarray(at + 46 + nameBytes, at + 46 + nameBytes + extraBytes);
    const sizes = sizesOf(directory.subarray(at, at + 46), extra);
    entries.push({ path, method: directory.readUInt16LE(at + 10), mode, ...sizes });
    at += 46 + nameBytes + extraBytes + directory.readUInt16LE(at + 32);
  }
  return entries;
}

/** Numbers above 4 GiB stand in the extra field, in a fixed order, each only where the header has none. */
function sizesOf(header: Buffer, extra: Buffer): Pick<Entry, "packedBytes" | "offset"> {
  const given = [header.readUInt32LE(24), header.readUInt32LE(20), header.readUInt32LE(42)];
  let large: Buffer | undefined;
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2))
    if (extra.readUInt16LE(at) === 1) large = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2));
  let at = 0;
  const [, packedBytes = 0, offset = 0] = given.map((value) => {
    if (value !== whole32) return value;
    if (!large || at + 8 > large.length) throw wrong("a size is missing");
    at += 8;
    return Number(large.readBigUInt64LE(at - 8));
  });
  return { packedBytes, offset };
}

async function extract(file: FileHandle, entry: Entry, to: string, bytesMax: number): Promise<number> {
  const { path, method, packedBytes, offset } = entry;
  if (method !== 0 && method !== 8) throw wrong(`${path} is packed by method ${method}, which is not known`);
  const header = await read(file, offset, 30);
  const start = offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  let bytes = 0;
  const counting = new Transform({
    transform(part: Buffer, _encoding, done) {
      bytes += part.length;
      done(bytes > bytesMax ? wrong("it unpacks to more than it may") : null, part);
    },
  });
  const target = createWriteStream(to, { flags: "wx" });
  if (packedBytes === 0) await pipeline([], target);
  else {
    const source = file.createReadStream({ start, end: start + packedBytes - 1, autoClose: false });
    if (method === 0) await pipeline(source, counting, target);
    else await pipeline(source, createInflateRaw(), counting, target);
  }
  return bytes;
}

async function read(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, position);
  if (bytesRead < length) throw wrong("it is cut off");
  return bytes;
}

function isSafe(path: string): boolean {
  if (path === "" || path.startsWith("/") || path.includes("\\") || path.includes("\0")) return false;
  const parts = path.split("/");
  if (parts.at(-1) === "") parts.pop();
  return parts.every((part) => part !== "" && part !== "." && part !== "..");
}

const wrong = (why: string): Fault => new Fault("invalid", "unpack the artifact", { why });
