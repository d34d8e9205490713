import { digestSizeBytes } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { Upload } from "#blobs/uploads.ts";
import type {
  QueryWriteStatusRequest,
  QueryWriteStatusResponse,
  WriteRequest,
  WriteResponse,
} from "#wire/generated/google/bytestream/bytestream.ts";
import { need } from "#doors/build/caller.ts";
import { habitsOf } from "#doors/build/clients.ts";
import { isEmpty, shown } from "#doors/build/digests.ts";
import { resourceHeaderProblem, servedInstance, storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import { parseWriteName, type UploadName } from "#doors/build/names.ts";
import { invalid, outOfRange } from "#doors/build/refusals.ts";

/** How often to check whether another client has completed the blob in the meantime. */
const lookEveryBytes = 4 * 1024 * 1024;

/** Receives a blob, from its beginning or from where an upload was interrupted. */
export async function writeBlob(
  ports: BuildPorts,
  requests: AsyncIterable<WriteRequest>,
  call: BuildCall,
): Promise<WriteResponse> {
  const writing = new Writing(ports, call);
  try {
    const messages = requests[Symbol.asyncIterator]();
    for (let next = await messages.next(); next.done !== true; next = await messages.next()) {
      const answer = await writing.take(next.value);
      if (!answer) continue;
      if (next.value.finishWrite) await expectEnd(messages);
      return answer;
    }
    return await writing.brokenOff();
  } catch (error) {
    // What arrived before the connection broke is kept; what was refused is not (`Upload.append`, `finish`).
    await writing.suspend();
    throw error;
  }
}

/**
 * Nothing may follow the message with finish_write. But do not wait: a client that keeps its side open until it is
 * answered would wait for us while we wait for it.
 */
async function expectEnd(messages: AsyncIterator<WriteRequest>): Promise<void> {
  const turn = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
  const next = await Promise.race([messages.next(), turn]);
  if (next && next.done !== true) throw invalid("a message after the one that was to finish the write");
}

class Writing {
  readonly #ports: BuildPorts;
  readonly #call: BuildCall;
  #resourceName: string | undefined;
  #name: UploadName | undefined;
  #upload: Upload | undefined;
  #nextOffset = 0;
  /** As this call sent them, compressed or not. */
  #sentBytes = 0;
  #lookAtBytes = lookEveryBytes;

  constructor(ports: BuildPorts, call: BuildCall) {
    this.#ports = ports;
    this.#call = call;
  }

  /** The answer, once there is one. */
  async take(request: WriteRequest): Promise<WriteResponse | undefined> {
    const name = this.#name ?? this.#begin(request);
    if (request.resourceName !== "" && request.resourceName !== this.#resourceName)
      throw invalid(`another resource in the middle of an upload: ${shown(request.resourceName)}`);
    if (!this.#upload) {
      const isWhole = request.finishWrite && request.writeOffset === 0;
      // Writing an existing blob changes nothing and costs nothing, so there is no check first.
      if (isWhole && name.form === "plain") return await this.#whole(name, request);
      const early = await this.#early(name);
      if (early) return early;
      if (isWhole) return await this.#whole(name, request);
      await this.#open(name, request.writeOffset);
    }
    const upload = this.#upload as Upload;
    if (request.writeOffset !== this.#nextOffset)
      throw invalid(`write_offset ${request.writeOffset} where ${this.#nextOffset} was to come`);
    if (request.data.length > 0) await upload.append(request.data);
    this.#nextOffset += request.data.length;
    this.#sentBytes += request.data.length;
    if (request.finishWrite) {
      await upload.finish();
      this.#upload = undefined;
      return this.#committed(name);
    }
    if (this.#sentBytes < this.#lookAtBytes) return undefined;
    this.#lookAtBytes = this.#sentBytes + lookEveryBytes;
    return await this.#early(name);
  }

  /** The client stopped without finish_write. */
  async brokenOff(): Promise<WriteResponse> {
    if (!this.#name) throw invalid("a write without a single message");
    await this.suspend();
    return { committedSize: this.#upload?.sizeBytes ?? 0 };
  }

  async suspend(): Promise<void> {
    await this.#upload?.suspend();
  }

  #begin({ resourceName }: WriteRequest): UploadName {
    const call = this.#call;
    const { settings } = this.#ports;
    need(call.caller, "cache.write");
    const name = parseWriteName(resourceName);
    servedInstance(name.instance, settings);
    const problem = resourceHeaderProblem(call, resourceName);
    if (problem !== undefined) throw invalid(problem);
    const sizeBytes = digestSizeBytes(name.digest);
    if (sizeBytes > settings.blobBytesMax)
      throw invalid(`a blob of ${sizeBytes} bytes; at most ${settings.blobBytesMax} are taken here`);
    this.#name = name;
    this.#resourceName = resourceName;
    return name;
  }

  /** An existing blob need not be sent: the answer comes before the rest has been read. */
  async #early({ uuid, digest, form }: UploadName): Promise<WriteResponse | undefined> {
    const { blobs, uploads, near } = storeOf(this.#ports, this.#call);
    if (!isEmpty(digest) && (await blobs.missing([digest])).length > 0) return undefined;
    // A damaged copy is repaired by what is sent; where there is a tier, that has another.
    if (!isEmpty(digest) && !near && !(await uploads.committed({ uuid, digest })).complete) return undefined;
    await this.#upload?.suspend();
    return { committedSize: form === "zstd" ? -1 : digestSizeBytes(digest) };
  }

  /** All in one message, like nearly every blob. */
  async #whole(name: UploadName, { data }: WriteRequest): Promise<WriteResponse> {
    await storeOf(this.#ports, this.#call).blobs.write(name.digest, data, name.form);
    this.#sentBytes = data.length;
    return this.#committed(name);
  }

  async #open({ uuid, digest, form }: UploadName, offset: number): Promise<void> {
    const { uploads } = storeOf(this.#ports, this.#call);
    if (offset < 0) throw outOfRange(`write_offset ${offset} is negative`);
    try {
      this.#upload = await uploads.open({ uuid, digest }, offset, { form, caller: this.#call.caller.principal });
    } catch (error) {
      if (!isFault(error, "invalid")) throw error;
      const { sizeBytes } = await uploads.committed({ uuid, digest });
      throw offset > sizeBytes ? outOfRange(`write_offset ${offset}: only ${sizeBytes} bytes are kept`) : error;
    }
    this.#nextOffset = offset;
  }

  #committed({ digest, form }: UploadName): WriteResponse {
    const sizeBytes = digestSizeBytes(digest);
    if (form === "plain") return { committedSize: sizeBytes };
    const { compressedCommit } = habitsOf(
      this.#call.metadata?.toolDetails?.toolName,
      this.#call.headers.get("user-agent"),
    );
    if (compressedCommit === "plain") return { committedSize: sizeBytes };
    return { committedSize: compressedCommit === "compressed" ? this.#sentBytes : -1 };
  }
}

/** Nothing is stored of an unknown upload: that is an answer, too. */
export async function queryWriteStatus(
  ports: BuildPorts,
  { resourceName }: QueryWriteStatusRequest,
  call: BuildCall,
): Promise<QueryWriteStatusResponse> {
  need(call.caller, "cache.write");
  const { instance, uuid, digest } = parseWriteName(resourceName);
  servedInstance(instance, ports.settings);
  const problem = resourceHeaderProblem(call, resourceName);
  if (problem !== undefined) throw invalid(problem);
  if (isEmpty(digest)) return { committedSize: 0, complete: true };
  const { sizeBytes, complete } = await storeOf(ports, call).uploads.committed({ uuid, digest });
  return { committedSize: sizeBytes, complete };
}
