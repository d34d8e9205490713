/** Bytes of a process to lines of text. Invalid UTF-8 becomes U+FFFD; a line without end comes in pieces. */

export type Piece = { readonly text: string; /** False when more of the same line follows. */ readonly isEnd: boolean };

const pieceLengthMax = 64 * 1024;

export class LineReader {
  readonly #decoder = new TextDecoder("utf-8");
  readonly #onPiece: (piece: Piece) => void;
  #rest = "";

  constructor(onPiece: (piece: Piece) => void) {
    this.#onPiece = onPiece;
  }

  push(bytes: Uint8Array): void {
    this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): void {
    this.#take(this.#decoder.decode());
    if (this.#rest !== "") this.#onPiece({ text: withoutReturn(this.#rest), isEnd: true });
    this.#rest = "";
  }

  #take(text: string): void {
    let at = 0;
    for (let newline = text.indexOf("\n"); newline >= 0; newline = text.indexOf("\n", at)) {
      this.#onPiece({ text: withoutReturn(this.#rest + text.slice(at, newline)), isEnd: true });
      this.#rest = "";
      at = newline + 1;
    }
    this.#rest += text.slice(at);
    while (this.#rest.length > pieceLengthMax) {
      this.#onPiece({ text: this.#rest.slice(0, pieceLengthMax), isEnd: false });
      this.#rest = this.#rest.slice(pieceLengthMax);
    }
  }
}

const withoutReturn = (text: string): string => (text.endsWith("\r") ? text.slice(0, -1) : text);
