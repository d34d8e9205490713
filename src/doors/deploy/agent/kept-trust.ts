/** The keys that this machine trusts, on its disk: what was revoked stays so when no node answers. */
import { join } from "node:path";
import { isFault } from "#base/fault.ts";
import type { Purpose, Signed } from "#doors/deploy/signing/signing.ts";
import { Trust, Trusted } from "#doors/deploy/signing/trust.ts";
import { readIfThere, writeDurably } from "./durable-files.ts";

type Roots = readonly string[] | undefined;

export class KeptTrust {
  readonly #root: string;
  readonly #roots: Roots;
  readonly #trust: Trust;

  private constructor(root: string, roots: Roots, trusted: Trusted) {
    this.#root = root;
    this.#roots = roots;
    this.#trust = new Trust(trusted);
  }

  /** Nothing counts. */
  static none(root: string): KeptTrust {
    return new KeptTrust(root, undefined, { version: 0, keys: [], revoked: [] });
  }

  /** `roots`: the keys that the operator gave, as PEM; left out: those of the node at the first start. */
  static async open(root: string, roots: Roots, ask: () => Promise<Trusted>): Promise<KeptTrust> {
    const text = await readIfThere(pathIn(root));
    const kept = text === undefined ? undefined : (JSON.parse(text) as { roots: string[] | null; trusted: unknown });
    const known = kept && Trusted.parse(kept.trusted);
    // An operator who gives other keys begins again; what was revoked stays so.
    const isSame = JSON.stringify(kept?.roots ?? null) === JSON.stringify(roots ?? null);
    if (known && isSame) return new KeptTrust(root, roots, known);
    const given = roots && { version: 0, keys: [...roots], revoked: known?.revoked ?? [] };
    const opened = new KeptTrust(root, roots, given ?? known ?? (await earlier(root)) ?? (await ask()));
    await opened.#keep();
    return opened;
  }

  get version(): number {
    return this.#trust.kept.version;
  }

  open(signed: Signed, purpose: Purpose): string {
    return this.#trust.open(signed, purpose);
  }

  /** Takes a newer list, and keeps it before it counts. Answers with why it is refused. */
  async take(signed: Signed): Promise<string | undefined> {
    try {
      const refused = this.#trust.take(signed);
      if (refused === undefined) await this.#keep();
      return refused;
    } catch (error) {
      if (!isFault(error, "invalid")) throw error;
      return error.message;
    }
  }

  async #keep(): Promise<void> {
    const kept = { roots: this.#roots ?? null, trusted: this.#trust.kept };
    await writeDurably(pathIn(this.#root), JSON.stringify(kept));
  }
}

const pathIn = (root: string): string => join(root, "trust.json");

/** Agents of earlier versions kept the keys alone. */
async function earlier(root: string): Promise<Trusted | undefined> {
  const text = await readIfThere(join(root, "trusted-keys.json"));
  return text === undefined ? undefined : { version: 0, keys: JSON.parse(text) as string[], revoked: [] };
}
