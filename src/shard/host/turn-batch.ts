export type AnswerHandler<A> = { ready(answer: A): void; failed(error: unknown): void };

/** Collects the requests of one turn of the event loop and answers them with one call. */
export class TurnBatch<Q, A> {
  readonly #answer: (asked: readonly Q[]) => Promise<readonly A[]>;
  #questions: Q[] = [];
  #askers: AnswerHandler<A>[] = [];

  constructor(answer: (asked: readonly Q[]) => Promise<readonly A[]>) {
    this.#answer = answer;
  }

  ask(question: Q, when: AnswerHandler<A>): void {
    this.#questions.push(question);
    this.#askers.push(when);
    if (this.#askers.length === 1) queueMicrotask(() => void this.#run());
  }

  async #run(): Promise<void> {
    const questions = this.#questions;
    const askers = this.#askers;
    this.#questions = [];
    this.#askers = [];
    let answers: readonly A[];
    try {
      answers = await this.#answer(questions);
    } catch (error) {
      for (const asker of askers) asker.failed(error);
      return;
    }
    for (let i = 0; i < askers.length; i += 1) askers[i]?.ready(answers[i] as A);
  }
}

export const later = <Q, A>(turn: TurnBatch<Q, A>, question: Q): Promise<A> =>
  new Promise((ready, failed) => turn.ask(question, { ready, failed }));
