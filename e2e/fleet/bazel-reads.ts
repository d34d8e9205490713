/**
 * What Bazel's own record of its calls (--experimental_remote_grpc_log) says of its downloads: whether a server ever
 * sent more of a blob than was requested, or less without an error.
 *
 * Bazel 4 itself can end up with a blob twice without any server's fault: if its own output file fails while it
 * receives an answer, it cancels the call and asks from the same offset again, although it has counted those bytes
 * already. Then its build fails with another digest, and this shows that no server sent too much.
 */
import { Reader } from "#wire/reader.ts";

export type BazelRead = {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  /** Of gRPC. */
  readonly status: number;
};

export type BazelReads = {
  readonly reads: number;
  /** Started where another had been interrupted; those at the end got nothing more, as they must. */
  readonly resumed: number;
  readonly calledOff: number;
  readonly violations: readonly string[];
};

const cancelled = 1;

/** Pure. */
export function judgeReads(log: Uint8Array): BazelReads {
  const all = readsIn(log);
  const violations = all.flatMap(({ name, offset, bytes, status }) => {
    const size = Number(name.split("/").at(-1));
    if (offset + bytes <= size && (status !== 0 || offset + bytes === size)) return [];
    return [`${name} from ${offset} on gave ${bytes} bytes, with status ${status}`];
  });
  const resumed = all.filter(({ offset }) => offset > 0).length;
  const calledOff = all.filter(({ status }) => status === cancelled).length;
  return { reads: all.length, resumed, calledOff, violations };
}

/** Messages one after the other, each with its length before it. The last may be cut off. */
function readsIn(log: Uint8Array): readonly BazelRead[] {
  const reader = new Reader(log);
  const reads: BazelRead[] = [];
  while (reader.pos < log.length) {
    const entry = tryData(reader);
    if (!entry) break;
    const { 2: status, 3: method, 4: details } = fieldsOf(entry);
    const { 5: read } = fieldsOf(details);
    if (String(method) !== "google.bytestream.ByteStream/Read" || !read) continue;
    const { 1: request, 3: bytes } = fieldsOf(read);
    if (request === undefined && bytes === undefined) continue; // the connection broke before it could ask
    const { 1: name, 2: offset } = fieldsOf(request);
    const { 1: code } = fieldsOf(status);
    reads.push({ name: String(name), offset: numberOf(offset), bytes: numberOf(bytes), status: numberOf(code) });
  }
  return reads;
}

type Fields = Readonly<Record<number, Buffer | number | undefined>>;

const numberOf = (field: Fields[number]): number => (typeof field === "number" ? field : 0);

const wireVarint = 0;
const wireBytes = 2;

/** The last value of each field. */
function fieldsOf(message: Fields[number]): Fields {
  if (!(message instanceof Uint8Array)) return {};
  const reader = new Reader(message);
  const fields: Record<number, Buffer | number> = {};
  while (reader.pos < message.length) {
    const tag = reader.tag();
    if ((tag & 7) === wireVarint) fields[tag >>> 3] = reader.int64();
    else if ((tag & 7) === wireBytes) fields[tag >>> 3] = reader.data();
    else reader.skip(tag);
  }
  return fields;
}

function tryData(reader: Reader): Buffer | undefined {
  try {
    return reader.data();
  } catch {
    return undefined;
  }
}
