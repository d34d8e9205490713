/**
 * A release's units in the files of its staging folder, or of its folder once it is complete.
 *
 * UF1 A unit is written only after its bytes had the hash that the signed manifest names.
 * UF2 What lies there from an earlier attempt counts only if it has that hash.
 * UF3 A unit is handed to others only if what was read from the disk has that hash now.
 */
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { layoutOf, unitHash, type Layout } from "#doors/deploy/manifest/layout.ts";
import type { Manifest, Units } from "#doors/deploy/manifest/manifest.ts";
import { Have, shapeOf } from "#swarm/units.ts";

export class UnitFiles {
  readonly layout: Layout;
  readonly have: Have;
  #folder: string;

  constructor(folder: string, manifest: Pick<Manifest, "files">, units: Units) {
    this.#folder = folder;
    this.layout = layoutOf(manifest, units);
    this.have = new Have(shapeOf(Math.max(1, this.layout.units)));
  }

  /** The folder was renamed. */
  moveTo(folder: string): void {
    this.#folder = folder;
  }

  /** A folder with its final name is complete. */
  trust(): void {
    for (let unit = 0; unit < this.layout.units; unit += 1) this.have.add(unit);
  }

  /** Makes the files, in full length, and finds out which units are there already (UF2). */
  async prepare(manifest: Pick<Manifest, "files">): Promise<void> {
    for (const { path, sizeBytes } of manifest.files) {
      const at = join(this.#folder, path);
      await mkdir(dirname(at), { recursive: true });
      await using file = await open(at, "a+");
      const { size } = await file.stat();
      if (size !== sizeBytes) await file.truncate(sizeBytes);
    }
    for (let unit = 0; unit < this.layout.units; unit += 1)
      if ((await this.read(unit)) !== undefined) this.have.add(unit);
  }

  isRight(unit: number, bytes: Uint8Array): boolean {
    return bytes.length === this.layout.sizeOf(unit) && unitHash(bytes) === this.layout.sha256[unit];
  }

  async write(unit: number, bytes: Uint8Array): Promise<void> {
    if (!this.isRight(unit, bytes)) throw new Fault("corrupt", "write unit", { unit, why: "its hash is wrong" });
    for (const { at, length, segment, offset } of this.layout.piecesOf(unit))
      for (const place of this.layout.placesOf(segment)) {
        await using file = await open(join(this.#folder, place.path), "r+");
        await file.write(bytes, at, length, place.offset + offset);
      }
  }

  /** Undefined where the bytes on the disk are not the unit's (UF3). */
  async read(unit: number): Promise<Buffer | undefined> {
    const bytes = Buffer.alloc(this.layout.sizeOf(unit));
    for (const { at, length, segment, offset } of this.layout.piecesOf(unit)) {
      const [place] = this.layout.placesOf(segment);
      if (!place) return undefined;
      await using file = await open(join(this.#folder, place.path), "r").catch(ignoreMissing);
      if (!file) return undefined;
      const { bytesRead } = await file.read(bytes, at, length, place.offset + offset);
      if (bytesRead !== length) return undefined;
    }
    return this.isRight(unit, bytes) ? bytes : undefined;
  }
}
