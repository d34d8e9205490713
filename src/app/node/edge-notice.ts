/** Publishes for local tools how to reach the node's port, and the node's certificate. */
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import type { ServedEdge } from "#app/compose/edge.ts";
import { publishEdge, type DataFolder } from "./data-folder.ts";
import { edgeAddressDefault, parseEdgeAddress } from "#app/config/edge-config.ts";

type NoticePorts = { readonly isTls: boolean; readonly log: (line: string) => void };

/** Until it is disposed; publishes renewed certificates too. */
export async function tellWhereEdgeIs(
  folder: DataFolder,
  { addresses, socket, onCertificate }: Pick<ServedEdge, "addresses" | "socket" | "onCertificate">,
  { isTls, log }: NoticePorts,
): Promise<AsyncDisposable> {
  const url = socket === undefined ? urlFromHere(addresses, isTls) : `unix:${socket}`;
  const notice = await publishEdge(folder, { url }); // without a certificate nothing is trusted yet
  let isOver = false;
  let telling = Promise.resolve(); // one after another: the last one counts
  onCertificate((pem) => {
    const tell = async (): Promise<void> => {
      if (!isOver) await publishEdge(folder, { url, certificate: firstOf(pem) });
    };
    telling = telling.then(tell).catch((error: unknown) => log(`publish a new certificate: ${String(error)}`));
  });
  await telling;
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      await telling;
      await notice[Symbol.asyncDispose]();
    },
  };
}

/** A loopback address if there is one; also if it listens on all addresses. */
export function urlFromHere(addresses: readonly string[], isTls: boolean): string {
  const isNear = (address: string): boolean => isLoopbackHost(hostOf(address)) || isAnyHost(hostOf(address));
  const address = addresses.find(isNear) ?? addresses[0] ?? edgeAddressDefault;
  // A socket on all addresses accepts this one too, in both families.
  const dialled = isAnyHost(hostOf(address)) ? `127.0.0.1:${parseEdgeAddress(address).port}` : address;
  return `${isTls ? "https" : "http"}://${dialled}`;
}

const hostOf = (address: string): string => parseEdgeAddress(address).host;
const isAnyHost = (host: string): boolean => /^(::ffff:)?[0:.]+$/i.test(host);

/** The node's own certificate; its issuers follow it. */
const firstOf = (pem: string): string =>
  /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(pem)?.[0] ?? "";
