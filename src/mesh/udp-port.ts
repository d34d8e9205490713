/** The UDP socket. */
import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { normalHost, type Address } from "./address.ts";
import { Bucket, type RimLimits } from "./rim-limits.ts";

export type UdpPorts = {
  readonly clock: Clock;
  readonly limits: RimLimits;
  readonly packet: (from: Address, bytes: Uint8Array) => void;
  readonly log: (line: string) => void;
};

/** The kernel's receive buffer; the kernel may grant less. */
const receiveBufferBytes = 2 * 1024 * 1024;

export class UdpPort {
  readonly #socket: Socket;
  readonly #bucket: Bucket;
  #isOpen = true;
  /** Packets dropped because there were too many. */
  dropped = 0;

  private constructor(socket: Socket, { clock, limits, packet, log }: UdpPorts) {
    this.#socket = socket;
    this.#bucket = new Bucket(limits.packetsPerSecondMax);
    socket.on("message", (bytes, { address, port }) => {
      if (this.#bucket.take(clock.monotonicMs())) packet({ host: normalHost(address), port }, bytes);
      else this.dropped += 1;
    });
    socket.on("error", (error) => log(`mesh: UDP: ${error.message}`));
  }

  static async open({ host, port }: Address, ports: UdpPorts): Promise<UdpPort> {
    const socket = createSocket({ type: isIPv6(host) ? "udp6" : "udp4" });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once("error", reject);
    socket.bind({ address: host, port, exclusive: true }, resolve);
    try {
      await promise;
    } catch (error) {
      socket.close();
      throw new Fault("exhausted", "listen for the mesh", { host, port, on: "UDP" }, error);
    }
    socket.off("error", reject);
    try {
      socket.setRecvBufferSize(receiveBufferBytes);
    } catch {
      // the system's default must do
    }
    return new UdpPort(socket, ports);
  }

  /** A packet that cannot be sent is lost, like any packet may be. */
  send({ host, port }: Address, bytes: Uint8Array): void {
    if (!this.#isOpen) return;
    try {
      this.#socket.send(bytes, port, host, () => {});
    } catch {
      // an address of another family, or a socket that is being closed
    }
  }

  close(): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    this.#isOpen = false;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.close(resolve);
    return promise;
  }
}
