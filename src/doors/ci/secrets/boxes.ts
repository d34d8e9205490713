/**
 * Sealed boxes, in which clients of GitHub's API send a secret: only the cluster opens them. A tenant's key follows
 * from a key of the cluster and from the month, so all nodes know it and none keeps it.
 */
import { hkdfSync } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";

export type PublicKey = { readonly keyId: string; readonly key: string };

const periodMs = 30 * 24 * 3_600_000;
/** What the box adds to its content. */
const overheadBytes = 48;

export class SecretBoxes {
  readonly #key: () => Promise<Uint8Array>;
  readonly #clock: Pick<Clock, "wallMs">;

  constructor(key: () => Promise<Uint8Array>, clock: Pick<Clock, "wallMs">) {
    this.#key = key;
    this.#clock = clock;
  }

  async publicKey(tenant: string): Promise<PublicKey> {
    const period = this.#period();
    const { publicKey } = await this.#pair(tenant, period);
    return { keyId: String(period), key: Buffer.from(publicKey).toString("base64") };
  }

  /** What a client sealed with the key of this month or the last one. */
  async open(tenant: string, keyId: string, sealed: string): Promise<string> {
    const now = this.#period();
    const period = [now, now - 1].find((one) => String(one) === keyId);
    if (period === undefined) throw wrong("key_id is not, or no longer, the key's: ask for the public key again");
    const box = Buffer.from(sealed, "base64");
    if (box.length <= overheadBytes) throw wrong("encrypted_value is no sealed box in base64");
    const { publicKey, privateKey } = await this.#pair(tenant, period);
    const { crypto_box_seal_open: open } = await sodium();
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(open(box, publicKey, privateKey));
    } catch {
      throw wrong("encrypted_value cannot be opened: it was sealed with another key, or is no text");
    }
  }

  #period(): number {
    return Math.floor(this.#clock.wallMs() / periodMs);
  }

  async #pair(tenant: string, period: number) {
    const seed = hkdfSync("sha256", await this.#key(), "", `${tenant} ${period}`, 32);
    return (await sodium()).crypto_box_seed_keypair(new Uint8Array(seed));
  }
}

const wrong = (why: string): Fault => new Fault("invalid", "open a sealed secret", { why });

/** 1.8 MB of WebAssembly, which only those pay who seal and open. */
export async function sodium() {
  const { default: loaded } = await import("libsodium-wrappers");
  await loaded.ready;
  return loaded;
}
