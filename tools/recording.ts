/**
 * `node bin/node.js tools/recording.ts` records the README's first commands in a terminal: it runs them against a real
 * node and writes what they printed, when they printed it, as docs/images/first-job.svg. Plain SVG with CSS animation,
 * so that it is shown wherever images are; a reader who wants no motion sees the last picture.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { clearAway } from "#testing/clear-away.ts";

const root = dirname(import.meta.dirname);
const path = join(root, "docs", "images", "first-job.svg");
const folder = mkdtempSync(join(tmpdir(), "millrace-recording-"));
const millrace = `node ${JSON.stringify(join(root, "bin", "millrace.js"))}`;

const env = {
  ...process.env,
  MILLRACE_DATA: join(folder, "data"),
  MILLRACE_EDGE_LISTEN: "127.0.0.1:0",
  MILLRACE_CLUSTER_SHARDS: "1",
  MILLRACE_NODE_NAME: "mill",
};

type Line = { readonly atMs: number; readonly text: string; readonly kind: "typed" | "printed" };

/** Keys are pressed at this pace, and people look at an answer for a while before they go on. */
const typedMs = 35;
const lookMs = 900;

class Recording {
  readonly lines: Line[] = [];
  nowMs = 400;
  readonly #nodes: ChildProcess[] = [];

  /** Shows the line as typed, runs it, and shows what it prints as it comes. */
  async run(line: string): Promise<void> {
    this.#type(line);
    const startedMs = this.nowMs;
    const startedMono = performance.now();
    const child = spawn("bash", ["-c", `${real(line)} 2>&1`], { env, stdio: ["ignore", "pipe", "ignore"] });
    let rest = "";
    child.stdout.on("data", (part: Buffer) => {
      this.nowMs = Math.max(this.nowMs, startedMs + performance.now() - startedMono);
      const lines = (rest + part.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const text of lines) this.#print(text);
    });
    await once(child, "close");
    this.nowMs = Math.max(this.nowMs, startedMs + performance.now() - startedMono) + lookMs;
  }

  /** Shows the line as typed and starts the node; of what it says, the first lines. */
  async start(line: string): Promise<void> {
    this.#type(line);
    const startedMono = performance.now();
    const child = spawn("bash", ["-c", `exec ${real(line.replace(/ &$/, ""))}`], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#nodes.push(child);
    let text = "";
    for await (const part of child.stdout) {
      text += String(part);
      if (text.includes("Ctrl-C")) break;
    }
    this.nowMs += performance.now() - startedMono;
    const shown = /^(millrace .* is up|  (edge|browser) .*)$/;
    for (const each of text.split("\n")) if (shown.test(each)) this.#print(plain(each));
    this.nowMs += lookMs;
  }

  async stop(): Promise<void> {
    for (const node of this.#nodes) {
      const ended = node.exitCode ?? node.signalCode;
      if (ended === null && node.kill("SIGTERM")) await once(node, "close");
    }
  }

  #type(text: string): void {
    this.lines.push({ atMs: this.nowMs, text, kind: "typed" });
    this.nowMs += text.length * typedMs + 250;
  }

  #print(text: string): void {
    this.lines.push({ atMs: this.nowMs, text, kind: "printed" });
  }
}

const real = (line: string): string =>
  line.replaceAll("npx millrace", millrace).replace(/^npm start/, `${millrace} up`);

/** A free port and a link that works once are of this recording alone: the usual port and a stroke stand for them. */
const plain = (text: string): string =>
  text
    .replace(/127\.0\.0\.1:\d+/, "127.0.0.1:8980")
    .replace(/code=\S+/, "code=…")
    .slice(0, columns - 2);

const title = "A terminal: a job prints hello; a node is killed with -9 and started again, and its job still ends.";
const columns = 96;
const [charWidth, lineHeight, margin] = [8.4, 20, 16];

function drawn(lines: readonly Line[], endMs: number): string {
  const height = margin * 2 + 28 + lines.length * lineHeight;
  const width = Math.ceil(margin * 2 + columns * charWidth);
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)}s`;
  const rows = lines.map(({ atMs, text, kind }, i) => {
    const y = margin + 28 + (i + 1) * lineHeight - 6;
    const prompt = kind === "typed" ? '<tspan class="prompt">$ </tspan>' : "";
    const took = kind === "typed" ? text.length * typedMs : 0;
    const steps = Math.max(1, text.length);
    const cover =
      took === 0
        ? ""
        : `<rect class="cover" x="${margin + 2 * charWidth}" y="${y - 15}" width="${(columns - 2) * charWidth}" height="${lineHeight}" ` +
          `style="animation:type ${seconds(took)} steps(${steps}) ${seconds(atMs)} both;--by:${(text.length * charWidth).toFixed(0)}px"/>`;
    const line = `<text x="${margin}" y="${y}" class="${kind}" xml:space="preserve">${prompt}${escaped(text)}</text>`;
    return `<g class="line" style="animation-delay:${seconds(atMs)}">${line}${cover}</g>`;
  });
  const box = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  const lights = ["#ff5f57", "#febc2e", "#28c840"].map(
    (colour, i) => `<circle cx="${22 + 20 * i}" cy="20" r="6" fill="${colour}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box} role="img" aria-labelledby="title">
<title id="title">${title}</title>
<!-- Written by tools/recording.ts from real commands; ${seconds(endMs)} long. -->
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9}
.typed{fill:#f0f6fc;font-weight:600}.prompt{fill:#3fb950}
.line{animation:show 1ms linear both}.cover{fill:#0d1117}
@keyframes show{from{visibility:hidden}to{visibility:visible}}
@keyframes type{from{transform:none}to{transform:translateX(var(--by))}}
@media (prefers-reduced-motion:reduce){.line{animation:none}.cover{display:none}}
</style>
<rect width="100%" height="100%" rx="10" fill="#0d1117"/>
${lights.join("")}
${rows.join("\n")}
</svg>
`;
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const recording = new Recording();
try {
  await recording.start("npm start");
  await recording.run("npx millrace job submit --follow -- echo hello");
  await recording.run("npx millrace job submit -- sh -c 'sleep 4; echo done'");
  await recording.run("kill -9 $(npx millrace nodes --json | node -pe 'JSON.parse(fs.readFileSync(0)).facts.pid')");
  await recording.start("npm start &");
  await recording.run("npx millrace job logs -f j0-2");
  await recording.run("npx millrace job list");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, drawn(recording.lines, recording.nowMs));
  console.log(`wrote ${path}: ${recording.lines.length} lines`);
} finally {
  await recording.stop();
  clearAway(folder);
}
