/**
 * HPACK decoding (RFC 7541): a header block in, fields out. Invalid input is a ConnectionError COMPRESSION_ERROR,
 * because afterwards both ends have different tables. Input that is merely too large is not: the rest of the block is
 * decoded for the tables and its fields are dropped, so that only the stream is affected (`overflowed`). A bomb, a few
 * bytes that decode to megabytes, is not decoded to its end: it ends the connection.
 *
 * Values are decoded at once, not on demand: the table needs the decoded length and the rules check the characters, so
 * the work is needed anyway, and a string of 170 characters costs less than an object that defers it.
 */
import { ConnectionError, errorCode } from "#h2/frames/error-codes.ts";
import { fieldKind, fieldOverheadBytes, HeaderField, kindOf, kindOfName } from "./header-field.ts";
import { staticCount, staticFields } from "./hpack-static.ts";
import { DynamicTable } from "./hpack-table.ts";
import { huffmanDecode, huffmanDecodedMax, huffmanSawControl } from "./huffman.ts";

export type HpackDecoderLimits = {
  /** The dynamic table size that we announce. */
  readonly tableBytesMax: number;
  /** The header list's size by RFC 9113 section 6.5.2: names, values and 32 for each field. */
  readonly headerListBytesMax: number;
  readonly headerCountMax: number;
};

/** Shared by all decoders: the string is created before another one decodes. Grows to the longest one seen. */
let scratch = Buffer.allocUnsafeSlow(4096);

/** A list this many times larger than allowed is an attack: resetting its stream is not enough. */
const bombFactor = 4;

export class HpackDecoder {
  readonly #table: DynamicTable;
  readonly #limits: HpackDecoderLimits;
  #bytes: Buffer = scratch;
  #at = 0;
  #end = 0;
  /** Set by #string: the decoded bytes had a NUL, CR or LF. */
  #sawControl = false;
  /** The last block had more fields or more bytes than the limits allow; its contents were dropped. */
  overflowed = false;

  constructor(limits: HpackDecoderLimits) {
    this.#limits = limits;
    this.#table = new DynamicTable(limits.tableBytesMax);
  }

  get tableBytes(): number {
    return this.#table.size;
  }

  decode(bytes: Buffer, at: number, end: number): HeaderField[] {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
    this.overflowed = false;
    const fields: HeaderField[] = [];
    let listBytes = 0;
    let sawField = false;
    while (this.#at < end) {
      const first = bytes[this.#at]!;
      let field: HeaderField;
      if (first >= 0x80) field = this.#field(this.#integer(0x7f));
      else if (first >= 0x40) field = this.#literal(0x3f, false, true);
      else if (first >= 0x20) {
        if (sawField) throw broken("a table size update behind a field");
        this.#sizeUpdate();
        continue;
      } else field = this.#literal(0x0f, first >= 0x10, false);
      sawField = true;
      listBytes += field.name.length + field.value.length + fieldOverheadBytes;
      if (listBytes > this.#limits.headerListBytesMax || fields.length >= this.#limits.headerCountMax) {
        this.overflowed = true;
        if (listBytes > this.#limits.headerListBytesMax * bombFactor)
          throw new ConnectionError(errorCode.enhanceYourCalm, "a header bomb");
      } else fields.push(field);
    }
    this.#bytes = scratch; // do not keep the memory of a read alive
    return this.overflowed ? [] : fields;
  }

  #field(index: number): HeaderField {
    if (index === 0) throw broken("index 0");
    if (index <= staticCount) return staticFields[index] as HeaderField;
    if (index - staticCount > this.#table.count) throw broken("an index beyond the table");
    return this.#table.at(index - staticCount - 1);
  }

  #literal(prefix: number, neverIndexed: boolean, indexed: boolean): HeaderField {
    const nameIndex = this.#integer(prefix);
    let name: string;
    let nameKind: number;
    if (nameIndex === 0) {
      name = this.#string();
      nameKind = kindOfName(name); // finds a control character in it, too
    } else {
      const named = this.#field(nameIndex);
      name = named.name;
      // A malformed value does not make its name malformed.
      nameKind = named.kind === fieldKind.malformed || name === "te" ? kindOfName(name) : named.kind;
    }
    const value = this.#string();
    const kind = this.#sawControl ? fieldKind.malformed : kindOf(name, value, nameKind);
    const field = new HeaderField(name, value, kind, neverIndexed);
    if (indexed) this.#table.add(field, name.length + value.length + fieldOverheadBytes);
    return field;
  }

  #sizeUpdate(): void {
    const size = this.#integer(0x1f);
    if (size > this.#limits.tableBytesMax) throw broken("a table size above what we allow");
    this.#table.resize(size);
  }

  #integer(prefix: number): number {
    const bytes = this.#bytes;
    let value = bytes[this.#at]! & prefix;
    this.#at += 1;
    if (value < prefix) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.#at >= this.#end) throw broken("an integer without end");
      const byte = bytes[this.#at]!;
      this.#at += 1;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw broken("an integer too large for anything here"); // 2^28 and above
  }

  #string(): string {
    if (this.#at >= this.#end) throw broken("a block that ends before a string");
    const huffman = this.#bytes[this.#at]! >= 0x80;
    const length = this.#integer(0x7f);
    const at = this.#at;
    const end = at + length;
    if (end > this.#end) throw broken("a string longer than its block");
    this.#at = end;
    if (huffman) return this.#huffmanString(at, end);
    this.#sawControl = false;
    const bytes = this.#bytes;
    for (let i = at; i < end; i += 1) {
      const byte = bytes[i]!;
      if (byte === 0 || byte === 10 || byte === 13) this.#sawControl = true;
    }
    return bytes.toString("latin1", at, end);
  }

  #huffmanString(at: number, end: number): string {
    const needed = huffmanDecodedMax(end - at);
    if (needed > scratch.length) scratch = Buffer.allocUnsafeSlow(needed * 2);
    const length = huffmanDecode(this.#bytes, at, end, scratch);
    if (length < 0) throw broken("a Huffman code that is none");
    this.#sawControl = huffmanSawControl;
    return scratch.toString("latin1", 0, length);
  }
}

const broken = (why: string): ConnectionError =>
  new ConnectionError(errorCode.compressionError, `header block: ${why}`);
