/** The fields of one message, each checked when it is read; an absent field has Go's zero value. */
import { Fault } from "#base/fault.ts";
import { ipText, type Address } from "#mesh/address.ts";
import { metaBytesMax, nameBytesMax } from "#mesh/machine/limits.ts";
import type { Versions } from "./messages.ts";
import { textOf, type Packed, type PackedMap } from "./msgpack-reader.ts";

export class Fields {
  readonly #map: PackedMap;

  constructor(map: PackedMap) {
    this.#map = map;
  }

  value(field: string): Packed {
    return this.#map.get(field) ?? null;
  }

  uint32(field: string): number {
    return this.#whole(field, 0xffff_ffff);
  }

  /** A count of bytes or items. */
  count(field: string, max: number): number {
    return this.#whole(field, max);
  }

  /** A logical time; undefined if it is absurdly large, so that it moves no clock. */
  lamport(field: string): number | undefined {
    const value = this.value(field) ?? 0;
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  }

  flag(field: string): boolean {
    return this.value(field) === true;
  }

  bytes(field: string, max: number): Uint8Array {
    const value = this.value(field) ?? new Uint8Array(0);
    if (!(value instanceof Uint8Array) || value.length > max) throw wrong(field);
    return value;
  }

  text(field: string): string {
    return textOf(this.bytes(field, nameBytesMax));
  }

  /** A member's name, which is required. */
  name(field: string): string {
    const text = this.text(field);
    if (text === "") throw wrong(field);
    return text;
  }

  /** A copy, because it is kept for long and must not retain its packet. */
  meta(field: string): Uint8Array {
    return Uint8Array.from(this.bytes(field, metaBytesMax)); // a Buffer's slice would not copy
  }

  address(field: string, portField: string): Address {
    const address = this.optionalAddress(field, portField);
    if (!address) throw wrong(field);
    return address;
  }

  optionalAddress(field: string, portField: string): Address | undefined {
    const host = ipText(this.bytes(field, 16));
    const port = this.#whole(portField, 0xffff);
    return host === undefined || port === 0 ? undefined : { host, port };
  }

  versions(field: string): Versions | undefined {
    const value = this.value(field);
    const numbers = value instanceof Uint8Array ? [...value] : isNumbers(value) ? value : [];
    if (numbers.length < 6) return undefined;
    const [pmin = 0, pmax = 0, pcur = 0, dmin = 0, dmax = 0, dcur = 0] = numbers;
    return [pmin, pmax, pcur, dmin, dmax, dcur];
  }

  #whole(field: string, max: number): number {
    const value = this.value(field) ?? 0;
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > max) throw wrong(field);
    return value;
  }
}

/** Depending on its version, Go's codec writes a list of bytes as bytes or as a list. */
const isNumbers = (value: Packed): value is readonly number[] =>
  Array.isArray(value) && value.every((item) => typeof item === "number" && item >= 0 && item <= 255);

const wrong = (field: string): Fault => new Fault("invalid", "read a message", { field });
