/** What a step prints: commands are obeyed, everything is masked, the rest is reported line by line. */
import { isAbsolute, relative } from "node:path";
import { isEnvRefused } from "#doors/ci/run/said/file-commands.ts";
import { commandIn, type CommandLine, endsPause, isTokenRefused } from "#doors/ci/run/said/command-line.ts";
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
  readonly workspace: string;
  /** `ACTIONS_ALLOW_UNSECURE_COMMANDS=true`. */
  readonly allowsUnsecure: boolean;
  /** `ACTIONS_ALLOW_UNSECURE_STOPCOMMAND_TOKENS=true`. */
  readonly allowsAnyToken: boolean;
};

const annotationsMax = 10;
const messageLengthMax = 4096;
const stopTokenMaskedLength = 6;

export class StepOutput {
  readonly effects = newEffects();
  readonly #ports: OutputPorts;
  readonly #counts = { notice: 0, warning: 0, error: 0 };
  #stopToken: string | undefined;
  #echoes: boolean;
  #hasFailedCommand = false;
  /** Until the step has started: its start is the first that is heard of it. */
  #held: Report[] | undefined = [];

  constructor(ports: OutputPorts) {
    this.#ports = ports;
    this.#echoes = ports.showsDebug;
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
    const hidden = (text: string): string => masks.mask(text).slice(0, messageLengthMax);
    const { title, file, code } = annotation;
    const shown: Annotation = {
      ...annotation,
      message: hidden(annotation.message),
      ...(title !== undefined && { title: hidden(title) }),
      ...(file !== undefined && { file: hidden(file) }),
      ...(code !== undefined && { code: hidden(code) }),
    };
    this.#report({ kind: "annotation", step, annotation: shown });
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
    const found = this.#ports.matchers.match(text, (message) => this.annotate({ level: "warning", message }));
    if (found) this.annotate(found);
    else this.line("plain", text);
  }

  #obey(command: CommandLine, text: string): void {
    const { name, properties, data } = command;
    if (this.#echoes && !neverEchoed.has(name)) this.line("command", text);
    switch (name) {
      case "notice":
      case "warning":
      case "error":
        return this.annotate({ level: name, message: data, ...placeOf(properties, this.#ports.workspace) });
      case "debug":
        return this.#ports.showsDebug ? this.line("debug", data) : undefined;
      case "group":
        return this.#report({ kind: "group", step: this.#ports.step, title: this.#ports.masks.mask(data) });
      case "endgroup":
        return this.#report({ kind: "group-ended", step: this.#ports.step });
      case "add-mask":
        return this.#addMask(data);
      case "echo":
        return this.#echo(data.trim().toLowerCase(), text);
      case "stop-commands":
        return this.#stop(data, text);
      case "add-matcher":
      case "remove-matcher":
        return this.#matcher(command, text);
      default:
        return this.#set(command, text);
    }
  }

  #addMask(data: string): void {
    if (data.trim() === "") {
      this.annotate({ level: "warning", message: "Can't add secret mask for empty string in ##[add-mask] command." });
      return;
    }
    if (this.#echoes) this.line("command", "::add-mask::***");
    this.#ports.masks.add(data);
  }

  #echo(word: string, text: string): void {
    if (word === "on" || word === "off") this.#echoes = word === "on";
    else
      this.#fail(text, `Invalid echo command value. Possible values can be: 'on', 'off'. Current value is: '${word}'.`);
  }

  #stop(token: string, text: string): void {
    if (isTokenRefused(token) && !this.#ports.allowsAnyToken) {
      const message = `Invalid token '${token}': it must not be empty, a command's name or 'pause-logging'`;
      this.#fail("stop-commands", message);
      return;
    }
    if (token.length > stopTokenMaskedLength) this.#ports.masks.add(token);
    this.#stopToken = token;
    this.line("plain", text);
  }

  /** A file that cannot be read fails the step, as for every other command. */
  #matcher({ name, properties, data }: CommandLine, text: string): void {
    const { matchers } = this.#ports;
    const { owner = "" } = properties;
    try {
      if (name === "add-matcher" && data === "")
        this.annotate({ level: "warning", message: "File path must be specified." });
      else if (name === "add-matcher") matchers.add(data);
      else if ((owner === "") === (data === ""))
        this.annotate({
          level: "warning",
          message: "##[remove-matcher] needs an owner name or a file path, and not both.",
        });
      else if (owner === "") matchers.removeFrom(data);
      else matchers.remove(owner);
    } catch (error) {
      this.#fail(text, (error as Error).message);
    }
  }

  #set({ name, properties, data }: CommandLine, text: string): void {
    const key = properties["name"] ?? "";
    const isDisabled = (name === "set-env" || name === "add-path") && !this.#ports.allowsUnsecure;
    if (isDisabled)
      this.#fail(
        text,
        `The \`${name}\` command is disabled. Write to the file that GITHUB_ENV or GITHUB_PATH names instead`,
      );
    else if (name === "add-path") this.effects.paths.push(data);
    else if (key === "") this.#fail(text, `Required field 'name' is missing in ##[${name}] command.`);
    else if (name === "set-output") this.effects.outputs.set(key, data);
    else if (name === "save-state") this.effects.state.set(key, data);
    else if (isEnvRefused(key))
      this.annotate({ level: "error", message: `Can't update ${key} environment variable using ::set-env:: command.` });
    else this.effects.env.set(key, data);
  }

  #fail(what: string, why: string): void {
    this.#hasFailedCommand = true;
    this.annotate({ level: "error", message: `Unable to process command '${what}' successfully.` });
    this.annotate({ level: "error", message: why });
  }
}

/** They show themselves, or must not be shown. */
const neverEchoed: ReadonlySet<string> = new Set([
  "add-mask",
  "debug",
  "echo",
  "endgroup",
  "error",
  "group",
  "notice",
  "stop-commands",
  "warning",
]);

/**
 * CI-48: an end without a beginning is both; columns count within one line only, and not without a line; what ends
 * before it begins is left out.
 */
function placeOf(
  properties: Readonly<Record<string, string>>,
  workspace: string,
): Omit<Annotation, "level" | "message"> {
  const number = (name: string): number | undefined => {
    const value = Number(properties[name]);
    return Number.isInteger(value) && value > 0 ? value : undefined;
  };
  const endLine = number("endline");
  const line = number("line") ?? endLine;
  const endColumn = number("endcolumn");
  const column = number("col") ?? endColumn;
  const hasColumns = line !== undefined && (endLine === undefined || endLine === line);
  const { title, file } = properties;
  return {
    ...(title !== undefined && { title }),
    ...(file !== undefined && { file: fileIn(workspace, file) }),
    ...span({ line, endLine }),
    ...(hasColumns && span({ column, endColumn })),
  };
}

/** `{ from, to }` without what is undefined, and without either where they are the wrong way round. */
function span<T extends Readonly<Record<string, number | undefined>>>(ends: T): { [name in keyof T]?: number } {
  const [from, to] = Object.values(ends);
  if (from !== undefined && to !== undefined && to < from) return {};
  return Object.fromEntries(Object.entries(ends).filter(([, value]) => value !== undefined)) as {
    [name in keyof T]?: number;
  };
}

function fileIn(workspace: string, file: string): string {
  const path = isAbsolute(file) ? relative(workspace, file) : file;
  return path.startsWith("..") ? file : path;
}
