/** The error codes of RFC 9113 section 7, and the two ways in which a rule is broken. */
export const errorCode = {
  noError: 0x0,
  protocolError: 0x1,
  internalError: 0x2,
  flowControlError: 0x3,
  settingsTimeout: 0x4,
  streamClosed: 0x5,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  connectError: 0xa,
  enhanceYourCalm: 0xb,
  inadequateSecurity: 0xc,
  http11Required: 0xd,
} as const;

export type ErrorCode = (typeof errorCode)[keyof typeof errorCode];

const names = new Map<number, string>(Object.entries(errorCode).map(([name, code]) => [code, name]));

/** For messages: a peer may send undefined codes. */
export const errorCodeName = (code: number): string => names.get(code) ?? `code ${code}`;

/**
 * The whole connection is lost: GOAWAY with the code, then the end. Thrown inside the machine and caught at its entry
 * points; no caller sees it. An error of one stream is not an exception: it is an RST_STREAM, and the connection goes
 * on.
 */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, why: string) {
    super(why);
    this.name = "ConnectionError";
    this.code = code;
  }
}
