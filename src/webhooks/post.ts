/**
 * One attempt at a delivery. A webhook makes the node call an address that a tenant chose: only by https unless the
 * configuration says so, never one of a private network unless it says so (checked on the address that is connected
 * to, so that no name leads there), no redirects, a bounded time, and a bounded look at the answer.
 */
import { lookup, type LookupAddress } from "node:dns";
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Fault } from "#base/fault.ts";
import { isPrivate } from "#sources/remote.ts";

export type PostRules = { readonly http: boolean; readonly privateAddresses: boolean; readonly timeoutMs: number };

/** `why` is empty if it was taken. */
export type Posted = { readonly status: number; readonly why: string };

export type Post = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
) => Promise<Posted>;

/** Throws Fault "invalid" for an address that is none, or is not allowed. */
export function checkAddress(url: string, { http, privateAddresses }: Omit<PostRules, "timeoutMs">): URL {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.protocol !== "https:" && parsed.protocol !== "http:")) throw refused("it is no https URL");
  if (parsed.protocol === "http:" && !http)
    throw refused("http is called only with webhooks.http: bodies are readable");
  if (parsed.username !== "" || parsed.password !== "") throw refused("a password does not belong in an address");
  const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
  if (!privateAddresses && ((isIP(host) !== 0 && isPrivate(host)) || /(^|\.)localhost\.?$/i.test(host)))
    throw refused(inside);
  return parsed;
}

const inside = "addresses of private networks are called only with webhooks.privateAddresses";
const refused = (why: string): Fault => new Fault("invalid", "send to a webhook's address", { why });

export const postBy =
  (rules: PostRules): Post =>
  (url, headers, body, signal) => {
    const parsed = checkAddress(url, rules);
    const send = parsed.protocol === "https:" ? overHttps : overHttp;
    const { promise, resolve } = Promise.withResolvers<Posted>();
    const ends = AbortSignal.any([signal, AbortSignal.timeout(rules.timeoutMs)]);
    const failed = (error: Error): void =>
      resolve({ status: 0, why: ends.aborted ? `no answer within ${rules.timeoutMs} ms` : error.message });
    const options = {
      method: "POST",
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      agent: false,
      signal: ends,
      ...(!rules.privateAddresses && { lookup: publicOnly }),
    };
    const call = send(parsed, options, (response) => {
      const { statusCode: status = 0 } = response;
      response.destroy(); // what it says does not matter
      resolve({ status, why: status >= 200 && status < 300 ? "" : `answered ${status}` });
    });
    call.on("error", failed);
    call.end(body);
    return promise;
  };

const publicOnly: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    const addresses = error ? [] : (found as readonly LookupAddress[]);
    if (!error && addresses.some(({ address }) => isPrivate(address))) return callback(refused(inside), "", 0);
    if (options.all === true) return callback(error, [...addresses]);
    callback(error, addresses[0]?.address ?? "", addresses[0]?.family ?? 0);
  });
};
