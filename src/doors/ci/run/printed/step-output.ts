/** What a step prints: commands are obeyed, everything is masked, the rest is reported line by line. */
import { commandIn, type CommandLine, endsPause, isTokenRefused } from "#doors/ci/run/command-line.ts";
import { LineReader, type Piece } from "./lines.ts";
import { type Masks, MaskStream } from "./mask.ts";
import type { Matchers } from "./matchers.ts";
import type { Annotation, LineLevel, Report, StepRef } from "#doors/ci/run/report.ts";

export type StepEffects = {
  readonly outputs: Map<string, string>;
  readonly state: Map<string, string>;
  readonly env: Map<string, string>;
  readonly paths: string[];
};

export const newEffects = (): StepEffects => ({ outputs: new Map(), state: new Map(), env: new Map(), paths: [] });

export type OutputPorts = {
  readonly step: StepRef;
  readonly masks: Masks;
  readonly matchers: Matchers;
  readonly report: (report: Report) => void;
  readonly showsDebug: boolean;
  /** `ACTIONS_ALLOW_UNSECURE_COMMANDS=true`. */
  readonly allowsUnsecure: boolean;
};

const annotationsMax = 10;
const messageLengthMax = 4096;
const stopTokenMaskedLength = 6;

export class StepOutput {
  readonly effects = newEffects();
  readonly #ports: OutputPorts;
  readonly #counts = { notice: 0, warning: 0, error: 0 };
  #stopToken: string | undefined;
  #echoes = false;
  #hasFailedCommand = false;
  /** Until the step has started: its start is the first that is heard of it. */
  #held: Report[] | undefined = [];

  constructor(ports: OutputPorts) {
    this.#ports = ports;
  }

  flush(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const report of held) this.#ports.report(report);
  }

  #report(report: Report): void {
    if (this.#held) this.#held.push(report);
    else this.#ports.report(report);
  }

  /** A reader for one of the two streams of a process. */
  reader(): LineReader {
    const stream = new MaskStream(this.#ports.masks);
    let isInLine = false;
    return new LineReader((piece) => {
      isInLine = this.#piece(piece, stream, isInLine);
    });
  }

  line(level: LineLevel, text: string): void {
    const { step, masks } = this.#ports;
    for (const line of text.split(/\r?\n/)) this.#report({ kind: "line", step, level, text: masks.mask(line) });
  }

  annotate(annotation: Annotation): void {
    const { step, masks } = this.#ports;
    this.line(annotation.level, annotation.message);
    if (this.#counts[annotation.level] >= annotationsMax) return;
    this.#counts[annotation.level] += 1;
    const message = masks.mask(annotation.message).slice(0, messageLengthMax);
    this.#report({ kind: "annotation", step, annotation: { ...annotation, message } });
  }

  /** A command that could not be obeyed fails its step. */
  get hasFailedCommand(): boolean {
    return this.#hasFailedCommand;
  }

  /** A line longer than one piece is no command; it goes through the masks piece by piece. */
  #piece({ text, isEnd }: Piece, stream: MaskStream, isInLine: boolean): boolean {
    const { step } = this.#ports;
    if (!isInLine && isEnd) {
      this.#whole(text);
      return false;
    }
    const shown = stream.push(text) + (isEnd ? stream.end() : "");
    if (shown !== "") this.#report({ kind: "line", step, level: "plain", text: shown });
    return !isEnd;
  }

  #whole(text: string): void {
    if (this.#stopToken !== undefined) {
      if (endsPause(text, this.#stopToken)) this.#stopToken = undefined;
      this.line("plain", text);
      return;
    }
    const command = commandIn(text);
    if (command) {
      this.#obey(command, text);
      return;
    }
    const found = this.#ports.matchers.match(text);
    if (found) this.annotate(found);
    else this.line("plain", text);
  }

  #obey(command: CommandLine, text: string): void {
    const { name, properties, data } = command;
    if (this.#echoes && name !== "add-mask" && name !== "echo") this.line("command", text);
    switch (name) {
      case "notice":
      case "warning":
      case "error":
        return this.annotate({ level: name, message: data, ...placeOf(properties) });
      case "debug":
        return this.#ports.showsDebug ? this.line("debug", data) : undefined;
      case "group":
        return this.#report({ kind: "group", step: this.#ports.step, title: this.#ports.masks.mask(data) });
      case "endgroup":
        return this.#report({ kind: "group-ended", step: this.#ports.step });
      case "add-mask":
        return this.#addMask(data);
      case "echo":
        this.#echoes = data.toLowerCase() === "on";
        return undefined;
      case "stop-commands":
        return this.#stop(data);
      case "add-matcher":
      case "remove-matcher":
        return this.#matcher(name, properties, data);
      default:
        return this.#set(name, properties, data);
    }
  }

  #addMask(data: string): void {
    if (data.trim() === "") this.annotate({ level: "warning", message: "Can't add secret mask for empty string" });
    else this.#ports.masks.add(data);
  }

  #stop(token: string): void {
    if (isTokenRefused(token) && !this.#ports.allowsUnsecure) {
      this.#fail(`Invalid token '${token}': it must not be empty, a command's name or 'pause-logging'`);
      return;
    }
    if (token.length > stopTokenMaskedLength) this.#ports.masks.add(token);
    this.#stopToken = token;
  }

  #matcher(name: "add-matcher" | "remove-matcher", properties: Readonly<Record<string, string>>, data: string): void {
    try {
      if (name === "add-matcher") this.#ports.matchers.add(data);
      else this.#ports.matchers.remove(properties["owner"] ?? data);
    } catch (error) {
      this.annotate({ level: "warning", message: `${name} ${data}: ${(error as Error).message}` });
    }
  }

  #set(name: string, properties: Readonly<Record<string, string>>, data: string): void {
    const key = properties["name"] ?? "";
    if (name === "set-output") this.effects.outputs.set(key, data);
    else if (name === "save-state") this.effects.state.set(key, data);
    else if (!this.#ports.allowsUnsecure)
      this.#fail(`The \`${name}\` command is disabled. Write to the file that GITHUB_ENV or GITHUB_PATH names instead`);
    else if (name === "set-env") this.effects.env.set(key, data);
    else this.effects.paths.push(data);
  }

  #fail(message: string): void {
    this.#hasFailedCommand = true;
    this.annotate({ level: "error", message });
  }
}

/** CI-48: an end without a line is a line; columns count within one line only. */
function placeOf(properties: Readonly<Record<string, string>>): Omit<Annotation, "level" | "message"> {
  const number = (name: string): number | undefined => {
    const value = Number(properties[name]);
    return Number.isInteger(value) && value > 0 ? value : undefined;
  };
  const endLine = number("endline");
  const line = number("line") ?? endLine;
  const isOneLine = endLine === undefined || endLine === line;
  const column = isOneLine ? number("col") : undefined;
  const endColumn = isOneLine ? number("endcolumn") : undefined;
  const { title, file } = properties;
  return {
    ...(title !== undefined && { title }),
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
    ...(endLine !== undefined && { endLine }),
    ...(column !== undefined && { column }),
    ...(endColumn !== undefined && { endColumn }),
  };
}
