/** Maps over many items with limited concurrency; the answers are in the order of the questions. */
export async function eachOf<Q, A>(
  questions: readonly Q[],
  atOnceMax: number,
  answer: (question: Q) => Promise<A>,
): Promise<readonly A[]> {
  const answers: A[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let at = next++; at < questions.length; at = next++) answers[at] = await answer(questions[at] as Q);
  };
  await Promise.all(Array.from({ length: Math.min(atOnceMax, questions.length) }, work));
  return answers;
}
