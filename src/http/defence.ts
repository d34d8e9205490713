/**
 * What a browser can be made to do. Any web page can make its visitor's browser send requests here, from inside the
 * network and with the visitor's cookie. So: a page of another site may change nothing and open no socket; and what
 * a browser sends without a credential must name this node by its address, because a name of the attacker's can be
 * made to lead here (DNS rebinding). Pure.
 */
import { isIP } from "node:net";

export type BrowserRequest = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  /** Whether it brought a credential of any kind. A cookie counts: browsers send it to the host that set it only. */
  readonly isProven: boolean;
  /** WebSocket upgrades are not bound by the same-origin policy, so they count as changes. */
  readonly isUpgrade?: boolean;
};

/** Why it is refused, or undefined. */
export function browserProblem(request: BrowserRequest): string | undefined {
  const { method, url, headers, isProven, isUpgrade = false } = request;
  const looks = (method === "GET" || method === "HEAD" || method === "OPTIONS") && !isUpgrade;
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  if (!looks && origin !== null && URL.parse(origin)?.host !== url.host) return foreign;
  // Browsers say which kind of site asked. Only a person who typed the address ("none") or a page of ours may read.
  if (site !== null && site !== "same-origin" && site !== "none" && !isNavigation(request)) return foreign;
  if (!isProven && !isPlainHost(url.hostname))
    return `without credentials this node is called by its address or as localhost, not as ${url.hostname.slice(0, 200)}`;
  return undefined;
}

const foreign = "a page of another site may not do this";

/** A link on another site may lead here: the person sees our page, and that page can read nothing of it. */
const isNavigation = ({ method, headers, isUpgrade }: BrowserRequest): boolean =>
  method === "GET" &&
  isUpgrade !== true &&
  headers.get("sec-fetch-mode") === "navigate" &&
  headers.get("sec-fetch-dest") === "document";

const isPlainHost = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || isIP(host.replace(/^\[(.*)\]$/, "$1")) !== 0;
