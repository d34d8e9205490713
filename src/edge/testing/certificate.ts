/** For tests: certificates generated on the spot, so that none is in the repository and none expires there. */
import { generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

export type TestCertificate = { readonly cert: string; readonly key: string };
export type TestAuthority = TestCertificate & {
  /** A certificate signed by this authority. */
  issue(names: TestNames): TestCertificate;
};

export type TestNames = {
  readonly cn?: string;
  readonly o?: string;
  readonly dns?: readonly string[];
  readonly uri?: readonly string[];
  readonly ip?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
};

const dayMs = 86_400_000;

export function testAuthority(cn = "test authority"): TestAuthority {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const own = certificate({ cn }, keys.publicKey, { issuer: { cn }, key: keys.privateKey, authority: true });
  return {
    cert: own,
    key: pemOf(keys.privateKey),
    issue(names) {
      const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const signer = { issuer: { cn }, key: keys.privateKey, authority: false };
      return { cert: certificate(names, leaf.publicKey, signer), key: pemOf(leaf.privateKey) };
    },
  };
}

const pemOf = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" });

// The few parts of DER that a certificate consists of; numbers are tags.
const sequence = 0x30;
const set = 0x31;
const ecdsaWithSha256 = der(sequence, der(0x06, Buffer.from("2a8648ce3d040302", "hex")));

function certificate(
  names: TestNames,
  publicKey: KeyObject,
  signer: { readonly issuer: TestNames; readonly key: KeyObject; readonly authority: boolean },
): string {
  const { notBefore = new Date(Date.now() - dayMs), notAfter = new Date(Date.now() + 30 * dayMs) } = names;
  const body = der(
    sequence,
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    ecdsaWithSha256,
    subject(signer.issuer),
    der(sequence, time(notBefore), time(notAfter)),
    subject(names),
    publicKey.export({ type: "spki", format: "der" }),
    extensions(names, signer.authority),
  );
  const signature = der(0x03, Buffer.of(0), sign("sha256", body, signer.key));
  const lines =
    der(sequence, body, ecdsaWithSha256, signature)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function subject({ cn, o }: TestNames): Buffer {
  const field = (oid: string, text: string | undefined): readonly Buffer[] =>
    text === undefined
      ? []
      : [der(set, der(sequence, der(0x06, Buffer.from(oid, "hex")), der(0x0c, Buffer.from(text))))];
  return der(sequence, ...field("55040a", o), ...field("550403", cn));
}

function extensions({ dns = [], uri = [], ip = [] }: TestNames, authority: boolean): Buffer {
  const alternative = [
    ...dns.map((name) => der(0x82, Buffer.from(name))),
    ...uri.map((name) => der(0x86, Buffer.from(name))),
    ...ip.map((name) => der(0x87, Buffer.from(name.split(".").map(Number)))),
  ];
  const constraints = authority ? der(sequence, der(0x01, Buffer.of(0xff))) : der(sequence);
  return der(
    0xa3,
    der(
      sequence,
      der(sequence, der(0x06, Buffer.from("551d13", "hex")), der(0x01, Buffer.of(0xff)), der(0x04, constraints)),
      ...(alternative.length === 0
        ? []
        : [der(sequence, der(0x06, Buffer.from("551d11", "hex")), der(0x04, der(sequence, ...alternative)))]),
    ),
  );
}

/** YYMMDDhhmmssZ: good until 2049. */
const time = (date: Date): Buffer => der(0x17, Buffer.from(date.toISOString().replace(/^..|[-:T]|\.\d+/g, "")));

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const body = Buffer.concat(contents);
  const { length } = body;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), body]);
}
