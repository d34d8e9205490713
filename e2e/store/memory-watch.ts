/** A process's memory, sampled all the time and reported by phase; and the CPU that it used. */
export type Watched = { memoryMb(): number; cpuSeconds(): number };

export type PhaseMemory = {
  readonly name: string;
  readonly seconds: number;
  /** Too small if the process ended in between. */
  readonly cpuSeconds: number;
  readonly medianMb: number;
  readonly peakMb: number;
};

const everyMs = 50;

export class MemoryWatch implements Disposable {
  readonly #of: Watched;
  readonly #say: (line: string) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #phases: PhaseMemory[] = [];
  #name: string | undefined;
  #beganMono = 0;
  #cpuBefore = 0;
  #samples: number[] = [];

  constructor(of: Watched, say: (line: string) => void) {
    this.#of = of;
    this.#say = say;
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  /** Ends the previous phase. */
  phase(name: string): void {
    this.#close();
    this.#name = name;
    this.#beganMono = performance.now();
    this.#cpuBefore = this.#of.cpuSeconds();
    this.#samples = [];
    this.#look();
  }

  end(): readonly PhaseMemory[] {
    this.#close();
    this.#name = undefined;
    return this.#phases;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const mb = this.#of.memoryMb();
    if (mb > 0) this.#samples.push(mb);
  }

  #close(): void {
    if (this.#name === undefined) return;
    this.#look();
    const sorted = this.#samples.toSorted((a, b) => a - b);
    const phase = {
      name: this.#name,
      seconds: (performance.now() - this.#beganMono) / 1_000,
      cpuSeconds: Math.max(0, this.#of.cpuSeconds() - this.#cpuBefore),
      medianMb: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
      peakMb: Math.round(sorted.at(-1) ?? 0),
    };
    this.#phases.push(phase);
    const { name, seconds, cpuSeconds, medianMb, peakMb } = phase;
    const time = `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU`;
    this.#say(`${name}: ${time}, memory of the node ${medianMb} MB, at most ${peakMb} MB`);
  }
}
