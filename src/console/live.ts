/**
 * Values that follow the server: streams of server-sent events. A browser has six connections to a host over HTTP/1.1,
 * for all of its tabs together, so a hidden tab closes its streams and opens them again when it is shown.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, reasonOf } from "./server.ts";

export type Live<T> = { readonly value: T | undefined; readonly problem: string | undefined; readonly isLive: boolean };

const nothing = { value: undefined, problem: undefined, isLive: false } as const;

type Listener<T> = {
  readonly message: (value: T) => void;
  readonly state: (isLive: boolean, problem?: string) => void;
  /** Whether this event is the last: the stream is then not opened again. */
  readonly isLast?: ((value: T) => boolean) | undefined;
};

/** Follows a stream until the returned function is called. EventSource reconnects by itself. */
export function follow<T>(path: string, { message, state, isLast = () => false }: Listener<T>): () => void {
  let source: EventSource | undefined;
  let isOver = false;
  let lastId = "";
  const close = (): void => {
    source?.close();
    source = undefined;
  };
  const open = (): void => {
    source = new EventSource(lastId === "" ? path : resumed(path, lastId));
    source.addEventListener("open", () => state(true));
    source.addEventListener("message", ({ data, lastEventId }: MessageEvent<string>) => {
      lastId = lastEventId;
      const value = JSON.parse(data) as T;
      if (isLast(value)) {
        isOver = true;
        close();
      }
      message(value);
    });
    source.addEventListener("error", () => {
      state(false);
      if (source?.readyState !== EventSource.CLOSED) return;
      isOver = true;
      // An EventSource does not say why it failed: one request to the same address learns the reason.
      void reasonOf(path).then((problem) => state(false, problem));
    });
  };
  const shown = (): void => {
    if (document.hidden) close();
    else if (!source && !isOver) open();
  };
  document.addEventListener("visibilitychange", shown);
  shown();
  return () => {
    document.removeEventListener("visibilitychange", shown);
    close();
  };
}

/** An EventSource that was closed and opened again goes on after the last event, as one that reconnects does. */
const resumed = (path: string, lastEventId: string): string =>
  `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams({ lastEventId }).toString()}`;

/** Every event of the stream replaces the value. */
export function useLive<T>(path: string, isLast?: (value: T) => boolean): Live<T> {
  const [live, setLive] = useState<Live<T>>(nothing);
  useEffect(() => {
    setLive(nothing);
    return follow<T>(path, {
      message: (value) => setLive({ value, problem: undefined, isLive: true }),
      state: (isLive, problem) => setLive((before) => ({ ...before, isLive, problem })),
      isLast,
    });
  }, [path]);
  return live;
}

export type EventsListener<T> = {
  readonly take: (events: readonly T[]) => void;
  readonly isLast: (event: T) => boolean;
};

/** Events of the stream one after the other, as many as are handed over in one frame together. */
export function useEvents<T>(path: string, listener: EventsListener<T>): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    let waiting: T[] = [];
    let frame = 0;
    const hand = (): void => {
      const events = waiting;
      [waiting, frame] = [[], 0];
      latest.current.take(events);
    };
    const stop = follow<T>(path, {
      message(value) {
        waiting.push(value);
        if (frame === 0) frame = requestAnimationFrame(hand);
      },
      state: () => {},
      isLast: (value) => latest.current.isLast(value),
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [path]);
}

/** A value that is asked for once. */
export function useAsked<T>(path: string): Live<T> {
  const [loaded, setLoaded] = useState<Live<T>>(nothing);
  useEffect(() => {
    let isOver = false;
    setLoaded(nothing);
    ask<T>(path).then(
      (value) => isOver || setLoaded({ value, problem: undefined, isLive: true }),
      (error: Error) => isOver || setLoaded((before) => ({ ...before, problem: error.message, isLive: false })),
    );
    return () => void (isOver = true);
  }, [path]);
  return loaded;
}
