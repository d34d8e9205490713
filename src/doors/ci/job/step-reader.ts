/** Reads the steps of a job while it runs, reports them to the shard, and remembers them for the result. */
import type { Step } from "#kernel/model/model.ts";
import type { StepLine } from "#doors/ci/result.ts";
import { FileTail } from "./log/file-tail.ts";
import { type Kept, KeptLine, type KeptSteps } from "./kept-steps.ts";
import type { StepNews } from "./request.ts";

/** A result has room for so many; a job with more keeps the first. */
const stepsMax = 150;
const nameLengthMax = 100;
const lineLengthMax = 64 * 1024;

type Keeper = Pick<KeptSteps, "take" | "kept">;

export class StepReader {
  readonly #report: (step: Step) => void;
  readonly #keeper: Keeper | undefined;
  readonly #lines = new Map<number, StepLine>();
  #rest = "";
  #tail: FileTail | undefined;

  /** `before`: the steps that an earlier attempt has ended. */
  constructor(
    report: (step: Step) => void,
    { before = [], keeper }: { readonly before?: readonly StepLine[]; readonly keeper?: Keeper } = {},
  ) {
    this.#report = report;
    this.#keeper = keeper;
    for (const line of before) this.#lines.set(line.number, line);
  }

  get lines(): readonly StepLine[] {
    return [...this.#lines.values()];
  }

  /** What the job kept last. */
  get kept(): Kept | undefined {
    return this.#keeper?.kept;
  }

  async follow(path: string): Promise<void> {
    this.#tail = await FileTail.open(path, async (piece) => this.#take(Buffer.from(piece).toString("latin1")));
  }

  async end(): Promise<readonly StepLine[]> {
    await this.#tail?.end();
    return [...this.#lines.values()];
  }

  #take(text: string): void {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = (lines.pop() ?? "").slice(0, lineLengthMax);
    for (const line of lines) this.#line(Buffer.from(line, "latin1").toString("utf8"));
  }

  #line(text: string): void {
    const kept = readKeptLine(text);
    if (kept) return this.#keeper?.take(kept);
    const news = readNews(text);
    if (!news) return; // a job can write what it likes into its own folder
    const name = news.name.slice(0, nameLengthMax);
    this.#report({ step: news.number, name, status: statuses[news.status] });
    if (news.status === "started" || (this.#lines.size >= stepsMax && !this.#lines.has(news.number))) return;
    const { number, status: conclusion, atMs, tookMs } = news;
    this.#lines.set(number, { number, name, conclusion, atMs, tookMs });
  }
}

const statuses = {
  started: "started",
  success: "succeeded",
  failure: "failed",
  cancelled: "failed",
  skipped: "skipped",
} as const satisfies Record<StepNews["status"], Step["status"]>;

function readKeptLine(text: string): KeptLine | undefined {
  if (!text.startsWith('{"kept":')) return undefined;
  try {
    return KeptLine.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function readNews(text: string): StepNews | undefined {
  try {
    const { number, name, status, atMs, tookMs } = JSON.parse(text) as Partial<StepNews>;
    const isNews =
      Number.isSafeInteger(number) &&
      (number ?? -1) >= 0 &&
      typeof name === "string" &&
      status !== undefined &&
      Object.hasOwn(statuses, status) &&
      Number.isFinite(atMs) &&
      Number.isFinite(tookMs);
    return isNews ? ({ number, name, status, atMs, tookMs } as StepNews) : undefined;
  } catch {
    return undefined;
  }
}
