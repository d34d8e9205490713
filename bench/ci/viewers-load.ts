/**
 * Viewers of one log, in a process of its own. One of them reads every line; the others look at the ids and count the
 * lines, as cheaply as can be: they share the cores with the node.
 */
import { Agent, type IncomingMessage, request } from "node:http";
import { answering } from "#bench/load-process.ts";

export type ViewWork = {
  readonly kind: "view";
  /** `host:port` */
  readonly address: string;
  readonly token: string;
  readonly path: string;
  readonly viewers: number;
  /** Besides: one that asks, and never reads. */
  readonly withSilent: boolean;
};

export type Viewed = {
  /** Of the viewer that reads everything, from the time in each line. */
  readonly waitsMs: readonly number[];
  /** Lines that each viewer got, the one that reads everything first. */
  readonly lines: readonly number[];
  readonly seconds: number;
  readonly cpuS: number;
};

const agent = new Agent({ keepAlive: false });

async function perform({ address, token, path, viewers, withSilent }: ViewWork): Promise<Viewed> {
  const [beganMs, cpu] = [performance.now(), process.cpuUsage()];
  const answers = await Promise.all(Array.from({ length: viewers }, () => asked(address, token, path)));
  const silent = withSilent ? await asked(address, token, path) : undefined;
  silent?.pause();
  const waitsMs: number[] = [];
  const lines = await Promise.all(
    answers.map((answer, at) => (at === 0 ? everything(answer, waitsMs) : counted(answer))),
  );
  silent?.destroy();
  const { user, system } = process.cpuUsage(cpu);
  return { waitsMs, lines, seconds: (performance.now() - beganMs) / 1_000, cpuS: (user + system) / 1e6 };
}

function asked(address: string, token: string, path: string): Promise<IncomingMessage> {
  const [host, port] = address.split(":");
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  return new Promise((resolve, reject) => {
    request({ host, port, path, headers, agent }, (answer) =>
      answer.statusCode === 200 ? resolve(answer) : reject(new Error(`${path} was answered with ${answer.statusCode}`)),
    )
      .on("error", reject)
      .end();
  });
}

async function everything(answer: IncomingMessage, waitsMs: number[]): Promise<number> {
  let rest = "";
  let lines = 0;
  for await (const part of answer.setEncoding("utf8")) {
    const nowMs = Date.now();
    const events = `${rest}${part as string}`.split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.slice(event.indexOf("data: ") + 6);
      if (!event.includes("data: ")) continue;
      const read = JSON.parse(data) as { readonly lines: readonly { readonly kind: string; readonly text: string }[] };
      lines += read.lines.length;
      for (const { kind, text } of read.lines)
        if (kind === "plain" && text.startsWith("@")) waitsMs.push(nowMs - Number(text.slice(1, 14)));
    }
  }
  return lines;
}

const mark = Buffer.from('{"at":');

/** Each line has one such mark, and text is JSON inside JSON: quotes in it are escaped. */
async function counted(answer: IncomingMessage): Promise<number> {
  let lines = 0;
  let held: Buffer = Buffer.alloc(0);
  for await (const part of answer) {
    const bytes = Buffer.concat([held, part as Buffer]);
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) lines += 1;
    held = tailOf(bytes);
  }
  return lines;
}

/** The beginning of a mark, at the end. */
function tailOf(bytes: Buffer): Buffer {
  for (let length = Math.min(mark.length - 1, bytes.length); length > 0; length -= 1)
    if (bytes.subarray(-length).equals(mark.subarray(0, length))) return Buffer.from(bytes.subarray(-length));
  return Buffer.alloc(0);
}

answering(perform);
