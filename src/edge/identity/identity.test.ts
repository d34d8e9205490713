import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { until } from "#testing/until.ts";
import { newToken, tokenSha256 } from "./bearer.ts";
import { Identity } from "./identity-config.ts";
import { openIdentity, type IdentityPorts, type OpenIdentity } from "./identity.ts";
import { testIssuer, testNowMs } from "#edge/testing/jwt.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-identity-"));
after(() => rm(folder, { recursive: true, force: true }));

const opening = (settings: object, ports: Partial<IdentityPorts> = {}): Promise<OpenIdentity> =>
  openIdentity(Identity.parse(settings), { clock: new ManualClock(testNowMs), onTrouble: () => {}, ...ports });

const nameFor = async ({ authenticator }: OpenIdentity, token?: string, address = "10.0.0.7"): Promise<string> => {
  const authorization = token === undefined ? undefined : `Bearer ${token}`;
  const outcome = await authenticator.authenticate({ authorization, certificate: undefined, address });
  return outcome.ok ? `${outcome.principal.name} of ${outcome.principal.tenant}` : outcome.refusal.reason;
};

describe("identity from settings", () => {
  test("without any: callers on this machine are anonymous, all others are refused", async () => {
    using identity = await opening({});
    equal(await nameFor(identity, undefined, "127.0.0.1"), "anonymous of default");
    equal(await nameFor(identity, undefined, "10.0.0.7"), "credentials-missing");
    equal(await nameFor(identity, "anything"), "token-unknown");
    using proxied = await opening({ cleartext: true });
    equal(await nameFor(proxied, undefined, "127.0.0.1"), "credentials-missing", "behind a proxy all call from here");
  });

  test("with the data folder's token: its owner is an operator, on this machine only", async () => {
    const token = newToken();
    const entry = { name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256(newToken()) };
    for (const settings of [{}, { tokens: [entry] }, { anonymous: { tenant: "t", roles: [] } }]) {
      using identity = await opening(settings, { owner: { sha256: tokenSha256(token) } });
      equal(await nameFor(identity, token, "127.0.0.1"), "owner of *");
      equal(await nameFor(identity, token, "::1"), "owner of *");
      equal(await nameFor(identity, token, "10.0.0.7"), "token-unknown");
    }
  });

  test("with authentication: callers on this machine need credentials too", async () => {
    const token = newToken();
    const entry = { name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256(token) };
    using identity = await opening({ tokens: [entry] });
    equal(await nameFor(identity, undefined, "127.0.0.1"), "credentials-missing");
    equal(await nameFor(identity, token), "ci of acme");
  });

  test("reads tokens from files, and again when they change; a bad file changes nothing", async () => {
    const [old, fresh] = [newToken(), newToken()];
    const file = join(folder, "ci.token");
    await writeFile(file, `${old}\n`);
    const clock = new ManualClock(testNowMs);
    const troubles: unknown[] = [];
    const settings = { tokens: [{ name: "ci", tenant: "acme", roles: ["member"], file }] };
    using identity = await opening(settings, { clock, reloadMs: 1_000, onTrouble: (error) => troubles.push(error) });
    equal(await nameFor(identity, old), "ci of acme");

    await writeFile(file, "short");
    await until("the bad file is reported", async () => (await clock.advance(1_000), troubles.length > 0));
    match(String(troubles[0]), /read a token: invalid .*at least 24/);
    equal(await nameFor(identity, old), "ci of acme");

    await writeFile(file, fresh);
    await until("the new token is known", async () => {
      await clock.advance(1_000);
      return (await nameFor(identity, fresh)) === "ci of acme";
    });
    equal(await nameFor(identity, old), "token-unknown");
    ok(!troubles.some((error) => String(error).includes(old) || String(error).includes(fresh)));
    identity[Symbol.dispose]();
    await until("nothing is watched any more", () => clock.pending === 0);
  });

  test("does not start with a missing file", async () => {
    const clock = new ManualClock();
    const settings = { tokens: [{ name: "ci", tenant: "acme", roles: ["member"], file: join(folder, "none") }] };
    await rejects(opening(settings, { clock }), (error) => isFault(error, "not-found"));
    equal(clock.pending, 0);
  });

  test("verifies tokens with keys from a file, from the settings, and from the issuer", async () => {
    const names = ["file", "inline", "url"] as const;
    const issuers = await Promise.all(names.map((name) => testIssuer(`https://${name}.example`)));
    const [fromFile, inline, fromUrl] = issuers;
    ok(fromFile && inline && fromUrl);
    const path = join(folder, "keys.json");
    await writeFile(path, JSON.stringify(fromFile.jwks));
    const fetched: unknown[] = [];
    const roles = { always: ["viewer"] };
    const url = "https://url.example/keys";
    const common = { audience: ["millrace"], tenant: { claim: "org" }, roles };
    using identity = await opening(
      {
        issuers: [
          { ...common, issuer: fromFile.name, keys: { kind: "file", path } },
          { ...common, issuer: inline.name, keys: { kind: "inline", keys: inline.jwks.keys } },
          { ...common, issuer: fromUrl.name, keys: { kind: "url", url, timeout: "2s" } },
        ],
      },
      {
        fetchText: (from, limits) => {
          fetched.push(from, limits);
          return Promise.resolve(JSON.stringify(fromUrl.jwks));
        },
      },
    );
    for (const issuer of issuers) equal(await nameFor(identity, await issuer.sign()), "ada of acme");
    equal(await nameFor(identity, await fromFile.sign({ iss: inline.name })), "signature-wrong");
    deepEqual(fetched, [url, { timeoutMs: 2_000, sizeBytesMax: 256 * 1024 }]);
  });

  test("reports keys that cannot be fetched, and asks callers to retry", async () => {
    const issuer = await testIssuer();
    const troubles: unknown[] = [];
    const keys = { kind: "url", url: "https://login.acme.example/keys" };
    using identity = await opening(
      {
        issuers: [
          {
            audience: ["millrace"],
            tenant: { claim: "org" },
            roles: { always: ["viewer"] },
            issuer: issuer.name,
            keys,
          },
        ],
      },
      {
        fetchText: () => Promise.reject(new Fault("unavailable", "fetch an issuer's keys", { url: keys.url })),
        onTrouble: (error) => troubles.push(error),
      },
    );
    equal(await nameFor(identity, await issuer.sign()), "keys-unavailable");
    equal(troubles.length, 1);
  });
});
