/** The hard limit: bytes are reserved before they are written and released when they are removed. Pure. */
export class SpaceBudget {
  #sizeBytesMax: number;
  /** Not available to callers, so that the janitor has space to compact and to record evictions. */
  readonly #reserveBytesMax: number;
  #usedBytes = 0;

  constructor(sizeBytesMax: number, reserveBytesMax: number) {
    this.#sizeBytesMax = sizeBytesMax;
    this.#reserveBytesMax = reserveBytesMax;
  }

  get sizeBytesMax(): number {
    return this.#sizeBytesMax;
  }

  /** The disk's free space changed. */
  resize(sizeBytesMax: number): void {
    this.#sizeBytesMax = sizeBytesMax;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** How much callers may use. */
  get offeredBytes(): number {
    return this.#sizeBytesMax - Math.min(this.#reserveBytesMax, this.#sizeBytesMax / 4);
  }

  fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.offeredBytes;
  }

  /** False, without effect, if it would exceed the limit. */
  take(bytes: number): boolean {
    if (!this.fits(bytes)) return false;
    this.#usedBytes += bytes;
    return true;
  }

  /** For the store's own records, which may use the reserve: they are small or free space soon. */
  takeOwn(bytes: number): void {
    this.#usedBytes += bytes;
  }

  give(bytes: number): void {
    this.#usedBytes = Math.max(0, this.#usedBytes - bytes);
  }
}
