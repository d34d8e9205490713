/**
 * Hides secrets in text, in one pass however many there are: an automaton (Aho and Corasick) over all their forms.
 * Text may come in pieces; what could be the start of a secret is held back until the next piece decides.
 */
import { formsOf, maskLengthMin } from "./secret-forms.ts";

const hidden = "***";

type State = { readonly next: Map<number, State>; fail: State | undefined; readonly depth: number; longest: number };

const newState = (depth: number): State => ({ next: new Map(), fail: undefined, depth, longest: 0 });

export class Masks {
  readonly #forms = new Set<string>();
  #root: State | undefined;

  /** False when the value is too short to be hidden. */
  add(secret: string): boolean {
    for (const form of formsOf(secret)) this.#forms.add(form);
    this.#root = undefined;
    return secret.trim().length >= maskLengthMin;
  }

  mask(text: string): string {
    if (this.#forms.size === 0 || text.length < maskLengthMin) return text;
    const stream = new MaskStream(this);
    return stream.push(text) + stream.end();
  }

  get root(): State {
    this.#root ??= built(this.#forms);
    return this.#root;
  }

  /** Everything that is hidden, in all its forms. */
  get forms(): readonly string[] {
    return [...this.#forms];
  }

  addForms(forms: readonly string[]): void {
    for (const form of forms) this.#forms.add(form);
    this.#root = undefined;
  }

  get size(): number {
    return this.#forms.size;
  }
}

function built(forms: ReadonlySet<string>): State {
  const root = newState(0);
  for (const form of forms) {
    let state = root;
    for (let at = 0; at < form.length; at += 1) {
      const code = form.charCodeAt(at);
      const next = state.next.get(code) ?? newState(state.depth + 1);
      state.next.set(code, next);
      state = next;
    }
    state.longest = form.length;
  }
  const queue: State[] = [root];
  for (let state = queue.shift(); state; state = queue.shift())
    for (const [code, child] of state.next) {
      child.fail = state === root ? root : stepFrom(state.fail ?? root, code, root);
      child.longest = Math.max(child.longest, child.fail.longest);
      queue.push(child);
    }
  return root;
}

function stepFrom(from: State, code: number, root: State): State {
  for (let state: State | undefined = from; state; state = state.fail) {
    const next = state.next.get(code);
    if (next) return next;
  }
  return root;
}

/** One text in pieces. */
export class MaskStream {
  readonly #masks: Masks;
  #state: State | undefined;
  #held = "";
  /** Parts of what is held that are secret, from and to; merged, in order. */
  #ranges: [number, number][] = [];

  constructor(masks: Masks) {
    this.#masks = masks;
  }

  /** What may be shown so far. */
  push(text: string): string {
    const root = this.#masks.root;
    let state = this.#state ?? root;
    const from = this.#held.length;
    this.#held += text;
    for (let at = 0; at < text.length; at += 1) {
      state = stepFrom(state, text.charCodeAt(at), root);
      if (state.longest > 0) this.#found(from + at + 1 - state.longest, from + at + 1);
    }
    this.#state = state;
    return this.#release(this.#held.length - state.depth);
  }

  end(): string {
    this.#state = undefined;
    return this.#release(this.#held.length);
  }

  #found(from: number, to: number): void {
    let start = Math.max(0, from);
    for (let last = this.#ranges.at(-1); last && last[1] > start; last = this.#ranges.at(-1)) {
      start = Math.min(start, last[0]);
      this.#ranges.pop();
    }
    this.#ranges.push([start, to]);
  }

  /** Everything before `upTo` that no later piece can change. */
  #release(upTo: number): string {
    const open = this.#ranges.find(([, to]) => to > upTo);
    const end = open ? Math.min(open[0], upTo) : upTo;
    let shown = "";
    let at = 0;
    for (const [from, to] of this.#ranges) {
      if (to > end) break;
      shown += this.#held.slice(at, from) + hidden;
      at = to;
    }
    shown += this.#held.slice(at, end);
    this.#ranges = this.#ranges.filter(([, to]) => to > end).map(([from, to]) => [from - end, to - end]);
    this.#held = this.#held.slice(end);
    return shown;
  }
}
