import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * A client that sends `expect: 100-continue` holds its body back until it is asked for. It is asked when a handler
 * begins to read, and not at all if the request is refused because of its sender or its length.
 */
export function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read.bind(request);
  let isAsked = false;
  request._read = (size) => {
    if (!isAsked && !response.headersSent) response.writeContinue();
    isAsked = true;
    read(size);
  };
}
