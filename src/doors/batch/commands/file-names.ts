const fileNames = /\.(parquet|csv(\.gz)?|json|ndjson|jsonl)$/;

/** Whether a result of this name is one file, which the command writes; otherwise the node writes a folder. */
export const isFileName = (out: string): boolean => fileNames.test(out);
