/** Quotes identifiers and text values that come from users, for SQL that this door writes. */
export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const quoteText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** `c0, c1, ...`: columns of what stages hand on have no other names. */
export const columnNames = (count: number): string => indices(count).map(columnName).join(", ");

export const columnName = (index: number): string => `c${index}`;

export const indices = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
