/** A value that is asked for again whenever a stream says that something has changed: live, and without polling. */
import { useEffect, useState } from "preact/hooks";
import { follow, type Live } from "#console/live.ts";
import { ask } from "#console/server.ts";

/** Changes closer together than this are asked for once. */
const pauseMs = 250;

export function useChanging<T, E>(path: string, stream: string, isLast: (event: E) => boolean): Live<T> {
  const [live, setLive] = useState<Live<T>>({ value: undefined, problem: undefined, isLive: false });
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void => {
      timer = undefined;
      void ask<T>(path).then(
        (value) => isOver || setLive({ value, problem: undefined, isLive: true }),
        (error: Error) => isOver || setLive((before) => ({ ...before, problem: error.message, isLive: false })),
      );
    };
    const stop = follow<E>(stream, {
      message: () => (timer ??= setTimeout(look, pauseMs)),
      state: (isLive, problem) => setLive((before) => ({ ...before, isLive, problem: problem ?? before.problem })),
      isLast,
    });
    look();
    return () => {
      isOver = true;
      clearTimeout(timer);
      stop();
    };
  }, [path, stream]);
  return live;
}
