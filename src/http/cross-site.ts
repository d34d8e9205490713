/**
 * A browser sends what any web page asks it to, from inside the network and with the session's cookie. So a page of
 * another site could use a node that lets this machine's callers in, or a browser that is signed in. Pure.
 */
import { isIP } from "node:net";

export type BrowserRequest = {
  readonly method: string;
  /** The address that was asked for, with the host that the caller believes it talks to. */
  readonly url: string;
  /** Which site's page it comes from, where a browser says so. */
  readonly origin: string | null;
  /** Whether only its address speaks for it: without TLS, from this machine, without a credential. */
  readonly isUnproven: boolean;
  /** Whether it shows a session's cookie, which the browser sends whatever page asks, to any port of the host. */
  readonly hasSession?: boolean;
};

export const foreignPage = "a page of another site may not do this";

/** Why it is refused, or undefined. */
export function crossSiteProblem({ method, url, origin, isUnproven, hasSession }: BrowserRequest): string | undefined {
  const requested = new URL(url);
  // Requests that only read pass: the browser does not show the answer to the page.
  const changes = method !== "GET" && method !== "HEAD" && method !== "OPTIONS";
  if (changes && origin !== null && URL.parse(origin)?.host !== requested.host) return foreignPage;
  // Browsers name the page's site for whatever changes something: what does not is no page of this node.
  if (changes && hasSession === true && origin === null)
    return "with a browser's session this needs an origin header; programs call with a token";
  // The owner of a domain can point it at this node (DNS rebinding): page and node then look like one site.
  if (isUnproven && !isPlain(requested.hostname))
    return `without credentials this node is called by its address or localhost, not ${requested.hostname.slice(0, 200)}`;
  return undefined;
}

const isPlain = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || isIP(host.replace(/^\[(.*)\]$/, "$1")) !== 0;
