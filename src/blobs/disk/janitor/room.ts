/** The hard limit: bytes are taken before they are written, and given back when they are gone. Pure. */
export class Room {
  #sizeBytesMax: number;
  /** Kept free of what callers bring, so that the janitor has room to work in and news can be written down. */
  readonly #reserveBytesMax: number;
  #usedBytes = 0;

  constructor(sizeBytesMax: number, reserveBytesMax: number) {
    this.#sizeBytesMax = sizeBytesMax;
    this.#reserveBytesMax = reserveBytesMax;
  }

  get sizeBytesMax(): number {
    return this.#sizeBytesMax;
  }

  /** The disk has more or less to give than it had. */
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
