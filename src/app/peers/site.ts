/** Where a node is, as far as its configuration says so. */
import type { Config } from "#app/config/config.ts";

export const siteOf = ({ node: { region, rack } }: Pick<Config, "node">): Readonly<Record<string, string>> => ({
  ...(region !== undefined && { region }),
  ...(rack !== undefined && { rack }),
});
