/**
 * A content is cut into units, and the units are dealt out to stripes like cards: unit u belongs to stripe u mod k, and
 * is at position u div k of it. Each stripe travels through a tree of its own.
 */
export type Shape = {
  readonly units: number;
  /** How many stripes; at most as many as there are units. */
  readonly stripes: number;
};

export type Range = { readonly from: number; readonly to: number };

export const stripesMax = 16;
export const shapeOf = (units: number): Shape => ({ units, stripes: Math.max(1, Math.min(stripesMax, units)) });

export const stripeOf = ({ stripes }: Shape, unit: number): number => unit % stripes;
export const positionOf = ({ stripes }: Shape, unit: number): number => Math.floor(unit / stripes);
export const unitAt = ({ stripes }: Shape, stripe: number, position: number): number => position * stripes + stripe;
export const stripeLength = ({ units, stripes }: Shape, stripe: number): number =>
  Math.ceil((units - stripe) / stripes);

/** The units that a machine has, verified. */
export class Have {
  readonly shape: Shape;
  readonly #bits: Uint32Array;
  #count = 0;

  constructor(shape: Shape) {
    this.shape = shape;
    this.#bits = new Uint32Array(Math.ceil(shape.units / 32));
  }

  get count(): number {
    return this.#count;
  }

  get isComplete(): boolean {
    return this.#count === this.shape.units;
  }

  has(unit: number): boolean {
    return (((this.#bits[unit >>> 5] ?? 0) >>> (unit & 31)) & 1) === 1;
  }

  /** Whether it is new. */
  add(unit: number): boolean {
    if (unit < 0 || unit >= this.shape.units || this.has(unit)) return false;
    this.#bits[unit >>> 5] = (this.#bits[unit >>> 5] ?? 0) | (1 << (unit & 31));
    this.#count += 1;
    return true;
  }

  /** The first run of missing positions of a stripe at or after `from`. */
  gap(stripe: number, from: number, to = stripeLength(this.shape, stripe)): Range | undefined {
    let start = from;
    while (start < to && this.has(unitAt(this.shape, stripe, start))) start += 1;
    if (start >= to) return undefined;
    let end = start + 1;
    while (end < to && !this.has(unitAt(this.shape, stripe, end))) end += 1;
    return { from: start, to: end };
  }
}
