/**
 * Uploads in blocks, which come in any order and several at once. What is known of an upload is kept in records, so
 * that it goes on after a restart, and at another node.
 *
 * SV3 An upload never holds more than it may: blocks are counted as they come, and a block that is sent again replaces
 *     the one before.
 */
import { randomUUID } from "node:crypto";
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { type Fault, isFault } from "#base/fault.ts";
import { parseDigest, type Digest } from "#base/digest.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { Spool } from "#blobs/spool.ts";
import { Problem } from "#http/problem.ts";
import { contentOf, type Content } from "./content.ts";
import { nameLimits, type ServiceLimits } from "./limits.ts";
import { documentOf, everyName, type NameRecord, type Names } from "./names.ts";

export type UploadPorts = {
  readonly names: Names;
  readonly store: Store;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly limits: ServiceLimits;
};

type Upload = { readonly bytesMax: number; readonly untilMs: number; readonly content?: Content };
type Block = { readonly digest: Digest };

/** An upload by its name, which is hard to guess. */
export type UploadRef = { readonly tenant: string; readonly id: string };

const uploadKind = "ci.upload";
const blockKind = "ci.block";

export class BlockUploads {
  readonly #ports: UploadPorts;
  /** What uploads hold that this node takes; a node that does not know an upload yet asks the records. */
  readonly #held = new Map<string, Map<string, number>>();

  constructor(ports: UploadPorts) {
    this.#ports = ports;
  }

  async begin(tenant: string, bytesMax: number): Promise<UploadRef> {
    const { names, clock, limits } = this.#ports;
    const id = randomUUID();
    const upload: Upload = { bytesMax, untilMs: clock.wallMs() + limits.uploadMs };
    await names.create({ tenant, kind: uploadKind, name: id }, JSON.stringify(upload), nameLimits);
    return { tenant, id };
  }

  /** With its size, if the caller said it, a block waits for room instead of being refused. */
  async putBlock(ref: UploadRef, name: string, body: AsyncIterable<Uint8Array>, announced?: number): Promise<void> {
    const { upload } = await this.#open(ref);
    const held = await this.#heldBy(ref);
    if (!held.has(name) && held.size >= this.#ports.limits.blocksMax)
      throw new Problem(413, `an upload has at most ${this.#ports.limits.blocksMax} blocks`);
    const digest = await this.#store(ref.tenant, body, roomIn(held, name, upload.bytesMax), announced);
    const { sizeBytes } = must(parseDigest(digest), "a digest");
    if (sizeBytes > roomIn(held, name, upload.bytesMax)) throw tooMuch(upload.bytesMax); // others came meanwhile
    held.set(name, sizeBytes);
    await this.#write({ tenant: ref.tenant, kind: blockKind, name: `${ref.id}/${name}` }, { digest });
  }

  /** The blocks of this list, in this order, are the content; one that is named twice counts twice. */
  async commit(ref: UploadRef, blocks: readonly string[]): Promise<Content> {
    const { upload, record } = await this.#open(ref);
    const stored = await this.blocks(ref);
    const parts = blocks.map((name) => {
      const digest = stored.get(name);
      if (digest === undefined) throw new Problem(400, `the list names a block that was not sent: ${name}`);
      return digest;
    });
    return await this.#complete(ref, { upload, record }, parts);
  }

  async putWhole(ref: UploadRef, body: AsyncIterable<Uint8Array>, announced?: number): Promise<Content> {
    const { upload, record } = await this.#open(ref);
    const digest = await this.#store(ref.tenant, body, upload.bytesMax, announced);
    return await this.#complete(ref, { upload, record }, [digest]);
  }

  /** What was sent so far, by the block's name. */
  async blocks(ref: UploadRef): Promise<ReadonlyMap<string, Digest>> {
    const prefix = `${ref.id}/`;
    const found = new Map<string, Digest>();
    for await (const record of everyName(this.#ports.names, { tenant: ref.tenant, kind: blockKind, prefix }))
      found.set(record.name.slice(prefix.length), documentOf<Block>(record).digest);
    return found;
  }

  /** Undefined: the last byte has not come, or there is no such upload. */
  async content({ tenant, id }: UploadRef): Promise<Content | undefined> {
    const record = await this.#ports.names.read({ tenant, kind: uploadKind, name: id });
    return record && documentOf<Upload>(record).content;
  }

  /** Forgets the upload; its content stays for as long as it is kept by others. */
  async end({ tenant, id }: UploadRef): Promise<void> {
    const { names } = this.#ports;
    this.#held.delete(id);
    for await (const { name, version } of everyName(names, { tenant, kind: blockKind, prefix: `${id}/` }))
      await names.remove({ tenant, kind: blockKind, name }, version);
    const record = await names.read({ tenant, kind: uploadKind, name: id });
    if (record) await names.remove({ tenant, kind: uploadKind, name: id }, record.version);
  }

  async #open({ tenant, id }: UploadRef): Promise<{ readonly upload: Upload; readonly record: NameRecord }> {
    const { names, clock } = this.#ports;
    const record = await names.read({ tenant, kind: uploadKind, name: id });
    if (!record) throw new Problem(404, "there is no such upload, or it has ended");
    const upload = documentOf<Upload>(record);
    if (upload.untilMs <= clock.wallMs()) throw new Problem(403, "the upload took too long: begin again");
    return { upload, record };
  }

  async #heldBy(ref: UploadRef): Promise<Map<string, number>> {
    const known = this.#held.get(ref.id);
    if (known) return known;
    const held = new Map<string, number>();
    for (const [name, digest] of await this.blocks(ref))
      held.set(name, must(parseDigest(digest), "a digest").sizeBytes);
    const raced = this.#held.get(ref.id);
    if (raced) return raced;
    if (this.#held.size >= uploadsRemembered) this.#held.delete(this.#held.keys().next().value ?? "");
    this.#held.set(ref.id, held);
    return held;
  }

  async #store(
    tenant: string,
    body: AsyncIterable<Uint8Array>,
    bytesMax: number,
    announced: number | undefined,
  ): Promise<Digest> {
    const { spool, store, clock, limits } = this.#ports;
    const { blobs } = store.forTenant(tenant);
    const mayHave = Math.min(bytesMax, limits.blockBytesMax);
    if (announced !== undefined && announced > mayHave) throw tooMuch(mayHave);
    const owner = { tenant, principal: "ci" };
    try {
      using room = announced === undefined ? undefined : await spool.reserve(owner, announced, clock, roomWaitMs);
      await using spooled = await spool.take(within(body, mayHave), owner, "sha256", room);
      await blobs.write(spooled.digest, spooled.content());
      await this.#pin(blobs, spooled.digest);
      return spooled.digest;
    } catch (error) {
      throw isFault(error, "exhausted") ? busy(error) : error;
    }
  }

  async #pin(blobs: BlobStore, digest: Digest): Promise<void> {
    if ("missing" in (await blobs.pin([digest], this.#ports.limits.uploadMs)))
      throw new Problem(503, "the store is full: try again later", { headers: { "retry-after": "10" } });
  }

  async #complete(
    { tenant, id }: UploadRef,
    { upload, record }: { readonly upload: Upload; readonly record: NameRecord },
    parts: readonly Digest[],
  ): Promise<Content> {
    const { names, store } = this.#ports;
    const content = await contentOf(store.forTenant(tenant).blobs, parts);
    if (content.sizeBytes > upload.bytesMax) throw tooMuch(upload.bytesMax);
    const next: Upload = { ...upload, content };
    const written = await names.replace({ tenant, kind: uploadKind, name: id }, record.version, JSON.stringify(next));
    if (!written) throw new Problem(409, "the upload was completed by another call");
    return content;
  }

  async #write(id: Parameters<Names["read"]>[0], block: Block): Promise<void> {
    const { names } = this.#ports;
    const text = JSON.stringify(block);
    for (;;) {
      const { created, record } = await names.create(id, text, nameLimits);
      if (created || (await names.replace(id, record.version, text))) return;
    }
  }
}

const uploadsRemembered = 10_000;

function roomIn(held: ReadonlyMap<string, number>, name: string, bytesMax: number): number {
  let sum = 0;
  for (const [other, sizeBytes] of held) if (other !== name) sum += sizeBytes;
  return bytesMax - sum;
}

async function* within(body: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const part of body) {
    sizeBytes += part.length;
    if (sizeBytes > bytesMax) throw tooMuch(bytesMax);
    yield part;
  }
}

/** Longer than blocks before it take, shorter than clients wait. */
const roomWaitMs = 20_000;

/** Clients try 503 again; 429 they give up. */
const busy = (fault: Fault): Problem =>
  new Problem(503, `the node has no room for this upload now: ${String(fault.facts["why"] ?? "try again later")}`, {
    headers: { "retry-after": "5" },
    cause: fault,
  });

const tooMuch = (bytesMax: number): Problem => new Problem(413, `no more than ${bytesMax} bytes are accepted here`);
