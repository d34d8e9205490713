/** The columns of a result under their own names, from packs that call them c0, c1, ... */
import { carriedAs, uncarry } from "./column-types.ts";
import { columnName, quoteName } from "./quoting.ts";
import type { SourceColumn } from "./source.ts";
import { typeNamed } from "./type-names.ts";

/** With the types that they had before they were carried in Parquet. */
export const namedColumns = (columns: readonly SourceColumn[]): string =>
  columns.map(({ name, type }, i) => `${uncarry(columnName(i), typeNamed(type))} as ${quoteName(name)}`).join(", ");

/** For a Parquet file: that would make doubles of the widest integers, so they stay decimals. */
export const parquetColumns = (columns: readonly SourceColumn[]): string =>
  columns
    .map(({ name, type }, i) => {
      const plan = typeNamed(type);
      const value = carriedAs(plan) === "DECIMAL(38,0)" ? columnName(i) : uncarry(columnName(i), plan);
      return `${value} as ${quoteName(name)}`;
    })
    .join(", ");
