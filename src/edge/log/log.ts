/**
 * Structured logs, one JSON object per line.
 *
 * L1. Only the fields of the table below are ever written, each with its own type: there is no field for a header, a
 * body or a token, so none can be logged by mistake. Free text is also searched for what looks like a secret.
 * L2. The length of a line is limited, and so is the number of similar lines in an interval: the rest is logged as a
 * count.
 */
import type { Clock } from "#base/clock.ts";
import { logLevels, type LogLevel } from "./log-level.ts";
import { withoutSecrets } from "./log-mask.ts";
import { LogRepeats } from "./log-repeats.ts";

/** All fields. `error` is described with its causes; the others are written as they are. */
export const logFields = {
  tenant: "text",
  principal: "text",
  proof: "text",
  action: "text",
  method: "text",
  code: "text",
  reason: "text",
  peer: "text",
  address: "text",
  protocol: "text",
  file: "text",
  url: "text",
  job: "text",
  task: "text",
  kind: "text",
  attempts: "number",
  shard: "number",
  status: "number",
  count: "number",
  bytes: "number",
  tookMs: "number",
  expiresAtMs: "number",
  error: "error",
} as const;

type FieldTypes = { text: string; number: number; error: unknown };
export type LogFields = {
  readonly [Name in keyof typeof logFields]?: FieldTypes[(typeof logFields)[Name]] | undefined;
};

export type LogSettings = {
  readonly level: LogLevel;
  /** At most this many similar lines within `repeatsWithinMs`; lines are similar if event and reason are equal. */
  readonly repeatsMax: number;
  readonly repeatsWithinMs: number;
  readonly lineLengthMax: number;
};

export const logDefaults: LogSettings = {
  level: "info",
  repeatsMax: 10,
  repeatsWithinMs: 10_000,
  lineLengthMax: 4_096,
};

export class Log implements Disposable {
  readonly #settings: LogSettings;
  readonly #clock: Clock;
  readonly #write: (line: string) => void;
  readonly #repeats: LogRepeats;
  readonly #threshold: number;

  /** `write` gets whole lines, with line ends. */
  constructor(write: (line: string) => void, clock: Clock, settings: Partial<LogSettings> = {}) {
    this.#settings = { ...logDefaults, ...settings };
    this.#threshold = logLevels.indexOf(this.#settings.level);
    this.#clock = clock;
    this.#write = write;
    this.#repeats = new LogRepeats(clock, this.#settings, ({ level, event, reason }, count) =>
      this.#line(level, event, { reason, count }, " (more like this)"),
    );
  }

  debug(event: string, fields: LogFields = {}): void {
    this.#log("debug", event, fields);
  }

  info(event: string, fields: LogFields = {}): void {
    this.#log("info", event, fields);
  }

  warn(event: string, fields: LogFields = {}): void {
    this.#log("warn", event, fields);
  }

  error(event: string, fields: LogFields = {}): void {
    this.#log("error", event, fields);
  }

  /** Logs outstanding counts. */
  [Symbol.dispose](): void {
    this.#repeats[Symbol.dispose]();
  }

  #log(level: LogLevel, event: string, fields: LogFields): void {
    if (logLevels.indexOf(level) < this.#threshold) return;
    if (this.#repeats.mayTell({ level, event, reason: fields.reason })) this.#line(level, event, fields, "");
  }

  #line(level: LogLevel, event: string, fields: LogFields, suffix: string): void {
    const at = new Date(this.#clock.wallMs()).toISOString();
    const shown: Record<string, string | number | true> = { at, level, event: text(event) + suffix };
    let left = this.#settings.lineLengthMax - JSON.stringify(shown).length - cutNote.length;
    for (const [name, kind] of Object.entries(logFields)) {
      const value = fieldValue(kind, fields[name as keyof LogFields]);
      if (value === undefined) continue;
      const length = JSON.stringify(value).length + name.length + 4;
      if (length > left) {
        shown["cut"] = true;
        continue;
      }
      left -= length;
      shown[name] = value;
    }
    this.#write(`${JSON.stringify(shown)}\n`);
  }
}

const textLengthMax = 500;
const cutNote = ',"cut":true\n';

/** Undefined for a value that does not have the field's type, whatever a caller passed (L1). */
function fieldValue(kind: keyof FieldTypes, value: unknown): string | number | undefined {
  if (value === undefined) return undefined;
  switch (kind) {
    case "text":
      return typeof value === "string" ? text(value) : undefined;
    case "number":
      return typeof value === "number" && Number.isFinite(value) ? value : undefined;
    case "error":
      return text(describeError(value), 2 * textLengthMax);
  }
}

/** Cut before it is searched, to limit the cost, but with a margin, so that no secret is cut in half. */
function text(value: string, lengthMax = textLengthMax): string {
  const shown = withoutSecrets(value.slice(0, 4 * lengthMax));
  return shown.length > lengthMax || value.length > 4 * lengthMax ? `${shown.slice(0, lengthMax - 1)}…` : shown;
}

const causesMax = 5;

/** `message; because message; ...` */
function describeError(error: unknown): string {
  const messages: string[] = [];
  for (let at = error; at !== undefined && at !== null && messages.length < causesMax;) {
    messages.push(at instanceof Error ? at.message || at.name : typeof at === "string" ? at : typeof at);
    at = at instanceof Error ? at.cause : undefined;
  }
  return messages.join("; because ");
}
