/** Which regions a wave reaches, and whether the waves of a service file reach all of them. Pure. */
type Waves = {
  readonly waves: readonly { readonly share: number; readonly regions?: readonly string[] | undefined }[];
  readonly targets: { readonly regions: readonly string[] };
};

export const waveRegions = ({ waves, targets }: Waves, index: number): readonly string[] =>
  waves[index]?.regions ?? targets.regions;

/** What is wrong with the order of the waves: every region must get there, a larger share each time. */
export function wrongWaves(file: Waves, wholePpm: number): string | undefined {
  const { waves, targets } = file;
  const unknown = waves.flatMap(({ regions }) => regions ?? []).find((region) => !targets.regions.includes(region));
  if (unknown !== undefined) return `a wave names the region ${unknown}, which is not among targets.regions`;
  for (const region of targets.regions) {
    const shares = waves.filter((_, index) => waveRegions(file, index).includes(region)).map(({ share }) => share);
    if (shares.at(-1) !== wholePpm) return `the last wave must have share "100%", also in ${region}`;
    if (shares.some((share, i) => i > 0 && share <= (shares[i - 1] ?? 0)))
      return `each wave must have a larger share than the one before, also in ${region}`;
  }
  return undefined;
}
