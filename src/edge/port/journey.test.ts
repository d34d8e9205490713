// All parts together: a TLS server from files, callers with different credentials, the policy, metrics.
import { deepEqual, match } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { connect, createServer } from "node:tls";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { newToken, tokenSha256 } from "#edge/identity/bearer.ts";
import { ConnectionIdentity } from "#edge/identity/connection-identity.ts";
import { testAuthority, type TestCertificate } from "#edge/testing/certificate.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { openIdentity } from "#edge/identity/identity.ts";
import { testIssuer, testNowMs } from "#edge/testing/jwt.ts";
import { edgeMetrics } from "#edge/metrics/edge.ts";
import { MetricsRegistry } from "#edge/metrics/registry.ts";
import { readPeerCertificate } from "#edge/tls/peer-certificate.ts";
import { authorize, type Action } from "#access/policy.ts";
import { Tls } from "#edge/tls/tls-config.ts";
import { loadTls, tlsServerOptions } from "#edge/tls/tls-files.ts";

test("a call passes TLS, identity, policy and metrics, in that order", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-edge-"));
  const authority = testAuthority();
  const node = authority.issue({ cn: "node", ip: ["127.0.0.1"] });
  const file = async (name: string, content: string): Promise<string> => {
    await writeFile(join(folder, name), content);
    return join(folder, name);
  };
  const tls = Tls.parse({
    certificate: await file("cert.pem", node.cert),
    key: await file("key.pem", node.key),
    clientCa: await file("ca.pem", authority.cert),
  });
  const issuer = await testIssuer();
  const token = newToken();
  const clock = new ManualClock(testNowMs);
  using identity = await openIdentity(
    Identity.parse({
      tokens: [{ name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256(token) }],
      issuers: [
        {
          issuer: issuer.name,
          audience: ["millrace"],
          keys: { kind: "inline", keys: issuer.jwks.keys },
          tenant: { claim: "org" },
          roles: { always: ["viewer"] },
        },
      ],
      certificates: [{ match: "URI:spiffe://acme/worker/*", tenant: "*", roles: ["executor"] }],
    }),
    { clock, onTrouble: () => {} },
  );
  const registry = new MetricsRegistry();
  const metrics = edgeMetrics(registry, {
    connections: () => ({ silent: 0, stranger: 0, anonymous: 0, known: 0 }),
    certificateExpiresAtMs: () => 0,
  });

  // A minimal protocol: "<action> <tenant> <authorization>", answered with the principal, or with the refusal.
  const server = createServer({ ...tlsServerOptions(tls), ...(await loadTls(tls)).context }, (socket) => {
    const address = socket.remoteAddress ?? "";
    const caller = new ConnectionIdentity(identity.authenticator, clock, {
      certificate: readPeerCertificate(socket),
      address,
    });
    const answer = async (asked: string): Promise<void> => {
      const [, action = "", tenant = "", authorization = ""] = /^(\S+) (\S+) (.*)$/.exec(asked) ?? [];
      const who = await caller.identify(authorization === "" ? undefined : authorization);
      const allowed = who.ok ? authorize(who.principal, action as Action, tenant) : who;
      if (!allowed.ok) metrics.refused(allowed.refusal.reason);
      socket.end(allowed.ok && who.ok ? who.principal.name : allowed.ok ? "" : allowed.refusal.reason);
    };
    socket.once("data", (asked) => void answer(String(asked)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const ask = (asked: string, certificate: Partial<TestCertificate> = {}): Promise<string> => {
    const socket = connect({ port, host: "127.0.0.1", ca: authority.cert, ALPNProtocols: ["h2"], ...certificate });
    socket.write(asked);
    return text(socket);
  };
  const worker = authority.issue({ uri: ["spiffe://acme/worker/7"] });
  const stranger = testAuthority("stranger").issue({ uri: ["spiffe://acme/worker/7"] });
  try {
    deepEqual(
      await Promise.all([
        ask(`work.submit acme Bearer ${token}`),
        ask(`work.submit globex Bearer ${token}`),
        ask(`work.read acme Bearer ${await issuer.sign()}`),
        ask(`work.submit acme Bearer ${await issuer.sign()}`),
        ask("work.execute globex ", worker),
        ask("work.submit globex ", worker),
        ask("work.execute acme ", stranger),
        ask("work.read acme "),
        ask("work.execute acme Bearer wrong", worker),
      ]),
      [
        "ci",
        "tenant-foreign",
        "ada",
        "role-missing",
        "spiffe://acme/worker/7",
        "role-missing",
        "certificate-untrusted",
        "credentials-missing",
        "token-unknown",
      ],
    );
    match(registry.text(), /^millrace_edge_refusals_total\{reason="role-missing"\} 2$/m);
  } finally {
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  }
});
