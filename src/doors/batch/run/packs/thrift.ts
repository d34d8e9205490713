/**
 * Pure: reads structures in Thrift's compact protocol, as the footers of Parquet files are written. Every value says
 * where its bytes lie, so that parts can be copied as they are. Wrong bytes are a Fault, whatever they are.
 */
import { Fault } from "#base/fault.ts";

export type ThriftValue = {
  readonly from: number;
  readonly to: number;
  /** Numbers as they are, booleans too. */
  readonly number?: number;
  readonly bytes?: Buffer;
  readonly list?: readonly ThriftValue[];
  readonly fields?: ReadonlyMap<number, ThriftValue>;
};

const depthMax = 16;
const kinds = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  struct: 12,
};

export function readStruct(bytes: Buffer): ThriftValue {
  return new Reader(bytes).struct(0);
}

/** As the protocol writes whole numbers. */
export function zigzag(value: number): Buffer {
  return varint(BigInt(value) * 2n);
}

export function varint(value: bigint): Buffer {
  const all: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...all, Number(rest)]);
    all.push(Number(rest & 127n) | 128);
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  struct(depth: number): ThriftValue {
    if (depth > depthMax) throw wrong("it is nested too deeply");
    const from = this.#at;
    const fields = new Map<number, ThriftValue>();
    for (let id = 0; ;) {
      const head = this.#byte();
      if (head === 0) return { from, to: this.#at, fields };
      const delta = head >> 4;
      id = delta === 0 ? Number(this.#signed()) : id + delta;
      fields.set(id, this.#value(head & 15, depth + 1, true));
    }
  }

  /** A boolean field has its value in its kind; one of a list, in a byte. */
  #value(kind: number, depth: number, isField: boolean): ThriftValue {
    const from = this.#at;
    switch (kind) {
      case kinds.true:
      case kinds.false:
        return { number: (isField ? kind : this.#byte()) === kinds.true ? 1 : 0, from, to: this.#at };
      case kinds.byte:
        return { number: this.#byte(), from, to: this.#at };
      case kinds.i16:
      case kinds.i32:
      case kinds.i64:
        return { number: Number(this.#signed()), from, to: this.#at };
      case kinds.double:
        return { bytes: this.#take(8), from, to: this.#at };
      case kinds.binary:
        return { bytes: this.#take(Number(this.#unsigned())), from, to: this.#at };
      case kinds.list:
      case kinds.set:
        return this.#list(from, depth);
      case kinds.struct:
        return this.struct(depth);
      default:
        throw wrong(`there is a value of kind ${kind}`);
    }
  }

  #list(from: number, depth: number): ThriftValue {
    const head = this.#byte();
    const count = head >> 4 === 15 ? Number(this.#unsigned()) : head >> 4;
    if (count > this.#bytes.length - this.#at) throw wrong("a list is longer than the bytes");
    const list = Array.from({ length: count }, () => this.#value(head & 15, depth + 1, false));
    return { list, from, to: this.#at };
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw wrong("it ends too early");
    this.#at += 1;
    return byte;
  }

  #take(length: number): Buffer {
    if (length > this.#bytes.length - this.#at) throw wrong("it ends too early");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #unsigned(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw wrong("a number is too long");
  }

  #signed(): bigint {
    const value = this.#unsigned();
    return (value >> 1n) ^ -(value & 1n);
  }
}

const wrong = (why: string): Fault => new Fault("corrupt", "read footer", { why });
