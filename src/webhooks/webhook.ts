/** A webhook: where to send which events. A record of its tenant; how far it has got is another. */
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { FeedFilter } from "#feed/filter.ts";

export const webhooksMax = 100;
/** Of one tenant, for all of its webhooks. */
export const deadLettersMax = 1_000;

/** What a person says. */
export const Wanted = z.object({
  url: z.string().min(1).max(2_000),
  kinds: z
    .array(z.enum(["job", "stage", "task", "step"]))
    .max(4)
    .default(["job"]),
  doors: z.array(z.string().max(64)).max(16).default([]),
  tags: z.array(z.string().max(300)).max(16).default([]),
  /** "millrace": items as they are; or one of a door's formats: what that door makes of its own. */
  format: z.string().max(64).default("millrace"),
});
export type Wanted = z.output<typeof Wanted>;

export const Webhook = Wanted.extend({
  /** Tells webhooks apart that had the same name one after the other: part of each delivery's id. */
  id: z.string(),
  by: z.string(),
  createdAtMs: z.number(),
  disabled: z.object({ atMs: z.number(), why: z.string() }).optional(),
});
export type Webhook = z.output<typeof Webhook>;

/** Written by the node that delivers, and by no other while its time lasts. */
export const Progress = z.object({
  cursor: z.string(),
  node: z.string().default(""),
  untilMs: z.number().default(0),
  delivered: z.number().default(0),
  dead: z.number().default(0),
  failingSinceMs: z.number().optional(),
  last: z.object({ atMs: z.number(), status: z.number(), event: z.string() }).optional(),
  trouble: z.object({ atMs: z.number(), why: z.string() }).optional(),
});
export type Progress = z.output<typeof Progress>;

export const DeadLetter = z.object({
  webhook: z.string(),
  event: z.string(),
  body: z.string(),
  path: z.string().optional(),
  atMs: z.number(),
  attempts: z.number(),
  why: z.string(),
});
export type DeadLetter = z.output<typeof DeadLetter>;

export const webhooksIn = (records: Records) => ({
  hooks: recordsOf(records, { kind: "webhook", schema: Webhook, limits: { countMax: webhooksMax, bytesMax: 4 << 20 } }),
  progress: recordsOf(records, {
    kind: "webhook-progress",
    schema: Progress,
    limits: { countMax: webhooksMax, bytesMax: 4 << 20 },
  }),
  /** Named by webhook and delivery, as `webhook/delivery`. */
  dead: recordsOf(records, {
    kind: "webhook-dead",
    schema: DeadLetter,
    limits: { countMax: deadLettersMax, bytesMax: 64 << 20 },
  }),
});
export type WebhookRecords = ReturnType<typeof webhooksIn>;

/** The name of its secret in the vault of what the program keeps. */
export const secretName = (name: string): string => `webhook/${name}`;

/** `ci:github` is one of the door ci. */
export const doorOf = (format: string): string => format.split(":", 1)[0] ?? format;

export const filterOf = (tenant: string, { kinds, doors, tags, format }: Wanted): FeedFilter => ({
  tenant,
  kinds,
  doors: format === "millrace" ? doors : [doorOf(format)],
  ...(tags.length > 0 && {
    tags: tags.map((tag) => ({ name: tag.slice(0, tag.indexOf("=")), value: tag.slice(tag.indexOf("=") + 1) })),
  }),
});
