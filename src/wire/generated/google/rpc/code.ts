// Generated from proto/google/rpc/code.proto: change that and run `npm run generate`.

/** How a call ended. */
export const Code = {
  /** It succeeded. */
  OK: 0,
  /** The caller gave up. */
  CANCELLED: 1,
  /** The error is unknown. */
  UNKNOWN: 2,
  /** The request is wrong, whatever state the system is in. */
  INVALID_ARGUMENT: 3,
  /** Time ran out. It may have been done all the same. */
  DEADLINE_EXCEEDED: 4,
  /** What was asked for is not there. */
  NOT_FOUND: 5,
  /** What was to be made is there already. */
  ALREADY_EXISTS: 6,
  /** The caller is known and may not. */
  PERMISSION_DENIED: 7,
  /** A quota or some other resource is used up. */
  RESOURCE_EXHAUSTED: 8,
  /** The system is in a state in which it cannot be done; to try again without changing that is of no use. */
  FAILED_PRECONDITION: 9,
  /** Something else came in between; begin again further up. */
  ABORTED: 10,
  /** Beyond the end of what there is. */
  OUT_OF_RANGE: 11,
  /** There is no such method, or it is not supported here. */
  UNIMPLEMENTED: 12,
  /** A bug. */
  INTERNAL: 13,
  /** Not now; try again after a while. */
  UNAVAILABLE: 14,
  /** Data is lost for good. */
  DATA_LOSS: 15,
  /** The caller is not authenticated. */
  UNAUTHENTICATED: 16,
} as const;
