// What a page of another site can make a browser send, and what a page of ours sends.
import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { browserProblem } from "./defence.ts";

type Case = {
  readonly name: string;
  readonly method?: string;
  readonly url?: string;
  readonly headers?: Record<string, string>;
  readonly isProven?: boolean;
  readonly isUpgrade?: boolean;
  readonly refused: boolean;
};

const evil = { origin: "http://evil.example", "sec-fetch-site": "cross-site" };
const cases: readonly Case[] = [
  { name: "a tool without any of a browser's headers", refused: false },
  { name: "a tool that changes something", method: "POST", refused: false },
  { name: "our own page reads", headers: { "sec-fetch-site": "same-origin" }, refused: false },
  {
    name: "our own page changes",
    method: "POST",
    headers: { origin: "http://127.0.0.1:8980", "sec-fetch-site": "same-origin" },
    refused: false,
  },
  {
    name: "a person types the address",
    headers: { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" },
    refused: false,
  },
  {
    name: "a link on another site",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    refused: false,
  },
  { name: "a foreign page posts", method: "POST", headers: evil, refused: true },
  { name: "a foreign page posts with a cookie", method: "POST", headers: evil, isProven: true, refused: true },
  { name: "an old browser's foreign form", method: "POST", headers: { origin: "http://evil.example" }, refused: true },
  { name: "a sandboxed frame posts", method: "POST", headers: { origin: "null" }, refused: true },
  {
    name: "a foreign fetch reads",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
    refused: true,
  },
  {
    name: "a foreign image",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
    refused: true,
  },
  {
    name: "a foreign frame",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
    refused: true,
  },
  { name: "a foreign EventSource", headers: { ...evil, "sec-fetch-mode": "cors" }, refused: true },
  {
    name: "another port of this machine posts",
    method: "POST",
    headers: { origin: "http://127.0.0.1:3000" },
    refused: true,
  },
  { name: "another port of this machine reads", headers: { "sec-fetch-site": "same-site" }, refused: true },
  { name: "a foreign WebSocket", headers: { origin: "http://evil.example" }, isUpgrade: true, refused: true },
  { name: "our own WebSocket", headers: { origin: "http://127.0.0.1:8980" }, isUpgrade: true, refused: false },
  { name: "a name that leads here, without credentials", url: "http://evil.example:8980/v1/jobs", refused: true },
  {
    name: "a name that leads here, with credentials",
    url: "http://node.example:8980/v1/jobs",
    isProven: true,
    refused: false,
  },
  { name: "localhost", url: "http://localhost:8980/", refused: false },
  { name: "a name below localhost", url: "http://ci.localhost:8980/", refused: false },
  { name: "IPv6", url: "http://[::1]:8980/", refused: false },
];

describe("a browser's request", () => {
  for (const one of cases)
    test(`${one.name} is ${one.refused ? "refused" : "served"}`, () => {
      const { method = "GET", url = "http://127.0.0.1:8980/v1/jobs", headers = {}, isProven = false } = one;
      const request = { method, url: new URL(url), headers: new Headers(headers), isProven };
      const why = browserProblem({ ...request, ...(one.isUpgrade && { isUpgrade: true }) });
      equal(why !== undefined, one.refused, why ?? "served");
    });
});
