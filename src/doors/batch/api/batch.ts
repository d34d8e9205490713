/** `import { dataset, col, sql } from "millrace/batch"`: what job files of this door are written with. */
export { dataset, Dataset } from "./dataset.ts";
export { avg, col, count, countDistinct, Expression, lit, max, min, rowNumber, sql, sum } from "./expression.ts";
