/**
 * Regular expressions that strangers wrote, against lines that strangers wrote. V8 goes over to an engine without
 * backtracking where one backtracks too often; what that engine cannot run (look-around, references back) runs with a
 * limit of time, which costs 0.2 ms a line and is rare.
 */
import { setFlagsFromString } from "node:v8";
import { createContext, Script } from "node:vm";

const limitMs = 1_000;
const needsBacktracking = /\(\?<?[=!]|\\[1-9k]/;

export class PatternTooSlow extends Error {}

export class SafeExpression {
  readonly #expression: RegExp;
  readonly #isBacktracking: boolean;

  constructor(source: string) {
    // before the expression is compiled, and for this process only: a job's own, or `ci run`
    setFlagsFromString("--enable-experimental-regexp-engine-on-excessive-backtracks");
    this.#expression = new RegExp(source);
    this.#isBacktracking = needsBacktracking.test(source);
  }

  get groups(): number {
    return (new RegExp(`${this.#expression.source}|`).exec("")?.length ?? 1) - 1;
  }

  /** Throws PatternTooSlow. */
  exec(text: string): readonly (string | undefined)[] | undefined {
    const match = this.#isBacktracking ? execWithin(this.#expression, text) : this.#expression.exec(text);
    return match ?? undefined;
  }
}

const script = new Script("expression.exec(text)");

function execWithin(expression: RegExp, text: string): RegExpExecArray | null {
  try {
    return script.runInContext(createContext({ expression, text }), { timeout: limitMs }) as RegExpExecArray | null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new PatternTooSlow(`it took more than ${limitMs} ms for a line of ${text.length} characters`);
  }
}
