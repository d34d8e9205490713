/** What tasks print, line by line, each with its task's name before it where a job has several. */
import type { World } from "#door/command.ts";

type Piece = {
  readonly task: string;
  readonly stage: string;
  readonly key: string;
  readonly stream: string;
  readonly text: string;
  readonly several: boolean;
};

/** A line without an end is printed in parts of this length. */
const lineLengthMax = 64 * 1024;

export class OutputPrinter {
  readonly #world: Pick<World, "out">;
  readonly #begun = new Map<string, { readonly task: string; name: string; text: string }>();
  readonly #tasks = new Set<string>();
  #isSeveral = false;

  constructor(world: Pick<World, "out">) {
    this.#world = world;
  }

  print({ task, stage, key, stream, text, several }: Piece): void {
    this.#tasks.add(task);
    this.#isSeveral ||= several || this.#tasks.size > 1;
    const id = `${task} ${stream}`;
    const line = this.#begun.get(id) ?? { task, name: `${stage}/${key}`, text: "" };
    this.#begun.set(id, line);
    const lines = (line.text + text).split("\n");
    line.text = lines.pop() ?? "";
    for (const whole of lines) this.#say(line.name, whole);
    if (line.text.length <= lineLengthMax) return;
    this.#say(line.name, line.text);
    line.text = "";
  }

  /** Prints what ended without the end of a line. */
  end(): void {
    for (const { name, text } of this.#begun.values()) if (text !== "") this.#say(name, text);
    this.#begun.clear();
  }

  #say(name: string, line: string): void {
    this.#world.out(this.#isSeveral ? `${name} | ${line}` : line);
  }
}
