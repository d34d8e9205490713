/** The hard limit: bytes are taken before they are written, and given back when they are gone. Pure. */
export class Room {
  readonly sizeBytesMax: number;
  /** Kept free of what callers bring, so that the janitor has room to work in and news can be written down. */
  readonly #reserveBytes: number;
  #usedBytes = 0;

  constructor(sizeBytesMax: number, reserveBytes: number) {
    this.sizeBytesMax = sizeBytesMax;
    this.#reserveBytes = reserveBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** How much callers may use. */
  get offeredBytes(): number {
    return this.sizeBytesMax - this.#reserveBytes;
  }

  fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.offeredBytes;
  }

  /** False, and nothing is taken, when it would be too much. */
  take(bytes: number): boolean {
    if (!this.fits(bytes)) return false;
    this.#usedBytes += bytes;
    return true;
  }

  /** The store's own needs may use the reserve; they are small or make room soon. */
  takeOwn(bytes: number): void {
    this.#usedBytes += bytes;
  }

  give(bytes: number): void {
    this.#usedBytes = Math.max(0, this.#usedBytes - bytes);
  }
}
