/**
 * Cursors of lists: opaque to callers, checked when they come back. A cursor says where to go on (the last item's key),
 * never how many to skip, so that a page stays right while items come and go.
 */
import { z } from "zod";
import { Problem } from "./problem.ts";

export const pageSizeMax = 500;

/** The query fields of every list. */
export const pageFields = {
  limit: z.coerce.number().int().min(1).max(pageSizeMax).default(50).describe("How many items at most."),
  cursor: z.string().max(2_000).optional().describe("`next` of the page before; left out: the first page."),
} as const;

/** The answer of every list. */
export const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({
    items: z.array(item),
    next: z.string().optional().describe("Give it as `cursor` for the next page; absent on the last."),
  });

export const encodeCursor = (position: unknown): string => Buffer.from(JSON.stringify(position)).toString("base64url");

/** Throws a Problem unless it is a cursor of this list. */
export function decodeCursor<S extends z.ZodType>(cursor: string, position: S): z.output<S> {
  let given: unknown;
  try {
    given = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch (cause) {
    throw wrong(cause);
  }
  const parsed = position.safeParse(given);
  if (!parsed.success) throw wrong(parsed.error);
  return parsed.data;
}

const wrong = (cause: unknown): Problem =>
  new Problem(400, "cursor: this is no cursor of this list; leave it out for the first page", { cause });
