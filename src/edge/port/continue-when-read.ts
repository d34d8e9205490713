import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * A client that says `expect: 100-continue` holds its body back until it is asked for: so it is asked when somebody
 * begins to read it, and not at all when the request is refused for who sends it or how long it is.
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
