import { equal, match, throws } from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "#base/fault.ts";
import { Config } from "./config.ts";
import { checkSeparation } from "./task-separation.ts";

const sha256 = "a".repeat(64);
const token = (name: string, tenant: string, role = "member") => ({
  name,
  tenant,
  roles: [role],
  sha256: `${name}${sha256}`.slice(0, 64).replaceAll(/[^0-9a-f]/g, "0"),
});
const issuer = (tenant: object) => ({
  issuer: "https://id.example",
  audience: ["millrace"],
  keys: { kind: "url", url: "https://id.example/keys" },
  tenant,
  roles: { always: ["member"] },
});
const tls = { certificate: "/c", key: "/k" };
const apart = { kind: "plain", users: "shared" } as const;

const alone: Readonly<Record<string, object>> = {
  "nothing is set": {},
  "one tenant and the operator are known": {
    edge: { identity: { tokens: [token("1", "a"), token("2", "a"), token("3", "*", "operator")] } },
  },
  "an issuer's callers are of one tenant": { edge: { identity: { issuers: [issuer({ fixed: "a" })] } } },
  "the other listener is on loopback": { node: { listen: ["unix", "tcp:127.0.0.1:7433"] } },
};

const together: Readonly<Record<string, readonly [object, RegExp]>> = {
  "tokens name two tenants": [{ edge: { identity: { tokens: [token("1", "a"), token("2", "b")] } } }, /one tenant/],
  "anonymous callers are another tenant": [
    { edge: { identity: { tokens: [token("1", "a")], anonymous: { tenant: "b", roles: ["builder"] } } } },
    /one tenant/,
  ],
  "an issuer names tenants": [{ edge: { identity: { issuers: [issuer({ claim: "org" })] } } }, /one tenant/],
  "an issuer's claims are mapped to two": [
    { edge: { identity: { issuers: [issuer({ claim: "org", map: { x: "a", y: "b" } })] } } },
    /one tenant/,
  ],
  "the edge listens beyond this machine": [
    { edge: { listen: ["0.0.0.0:8980"], tls, identity: { tokens: [token("1", "a")] } } },
    /beyond this machine \(0\.0\.0\.0:8980\)/,
  ],
  "other nodes may call": [
    { node: { listen: ["unix", "tcp:0.0.0.0:7433"] }, cluster: { secretFile: "/s" } },
    /beyond this machine \(tcp:0\.0\.0\.0:7433\)/,
  ],
};

for (const [what, settings] of Object.entries(alone))
  test(`actions as the node's own user cause a warning if ${what}`, () => {
    match(checkSeparation(Config.parse(settings), apart) ?? "", /run only what you trust.*bubblewrap.*root/);
  });

for (const [what, [settings, why]] of Object.entries(together))
  test(`a node does not start with actions as its own user if ${what}`, () => {
    const config = Config.parse(settings);
    throws(
      () => checkSeparation(config, apart),
      (error) =>
        error instanceof Fault &&
        why.test(String(error.facts["why"])) &&
        /bubblewrap.*root.*worker\.enabled: false/.test(String(error.facts["wants"])),
    );
    for (const other of [undefined, { kind: "bubblewrap", users: "shared" }, { kind: "plain", users: "own" }] as const)
      equal(checkSeparation(config, other), undefined);
  });
