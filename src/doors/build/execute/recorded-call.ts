import type { BuildCall } from "#doors/build/call.ts";
import type { CallTraces } from "#door/ports.ts";

/** A call with a streamed answer, as a part of a trace if it is recorded. */
export function recorded<T>(
  method: string,
  traces: CallTraces | undefined,
  call: BuildCall,
  answer: () => AsyncIterable<T>,
): AsyncIterable<T> {
  const span = traces?.begin(method, call.headers.get("traceparent"));
  if (!span) return answer();
  call.trace = span.traceparent;
  return until(answer(), (error) => span.end(error));
}

async function* until<T>(stream: AsyncIterable<T>, ended: (error: string | undefined) => void): AsyncGenerator<T> {
  let error: string | undefined = "the caller has gone";
  try {
    yield* stream;
    error = undefined;
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
    throw thrown;
  } finally {
    ended(error);
  }
}
