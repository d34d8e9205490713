/** Whether a host, as settings and sockets write it, is this machine itself. */
export const isLoopbackHost = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
