// Generated from proto/grpc/reflection/v1/reflection.proto: change that and run `npm run generate`.
import type { Message, Service } from "#wire/message.ts";

/** One question. */
export type ServerReflectionRequest = {
  /** The host that is asked about; not used here. */
  readonly host: string;
  /** The question. */
  readonly messageRequest?:
    /** The file of that name. */
    | { readonly kind: "fileByFilename"; readonly value: string }
    /** The file that declares the message, enum, service, method or field of that full name. */
    | { readonly kind: "fileContainingSymbol"; readonly value: string }
    /** The file that declares that extension. */
    | { readonly kind: "fileContainingExtension"; readonly value: ExtensionRequest }
    /** The numbers of all extensions of the message of that full name. */
    | { readonly kind: "allExtensionNumbersOfType"; readonly value: string }
    /** The services; the text does not matter. */
    | { readonly kind: "listServices"; readonly value: string }
    | undefined;
};

export const ServerReflectionRequest: Message<ServerReflectionRequest> = {
  typeName: "grpc.reflection.v1.ServerReflectionRequest",
  write(message, to) {
    if (message.host !== "") {
      to.string(10, message.host);
    }
    switch (message.messageRequest?.kind) {
      case "fileByFilename": {
        to.string(26, message.messageRequest.value);
        break;
      }
      case "fileContainingSymbol": {
        to.string(34, message.messageRequest.value);
        break;
      }
      case "fileContainingExtension": {
        const start = to.open(42);
        ExtensionRequest.write(message.messageRequest.value, to);
        to.close(start);
        break;
      }
      case "allExtensionNumbersOfType": {
        to.string(50, message.messageRequest.value);
        break;
      }
      case "listServices": {
        to.string(58, message.messageRequest.value);
        break;
      }
    }
  },
  read(from, end, before) {
    let host = before === undefined ? "" : before.host;
    let messageRequest = before?.messageRequest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          host = from.string();
          break;
        }
        case 26: {
          messageRequest = { kind: "fileByFilename", value: from.string() };
          break;
        }
        case 34: {
          messageRequest = { kind: "fileContainingSymbol", value: from.string() };
          break;
        }
        case 42: {
          const stop = from.enter();
          messageRequest = { kind: "fileContainingExtension", value: ExtensionRequest.read(from, stop, messageRequest?.kind === "fileContainingExtension" ? messageRequest.value : undefined) };
          from.leave(stop);
          break;
        }
        case 50: {
          messageRequest = { kind: "allExtensionNumbersOfType", value: from.string() };
          break;
        }
        case 58: {
          messageRequest = { kind: "listServices", value: from.string() };
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { host, messageRequest };
  },
};

/** Names an extension. */
export type ExtensionRequest = {
  /** The full name of the message that is extended. */
  readonly containingType: string;
  /** The number of the field. */
  readonly extensionNumber: number;
};

export const ExtensionRequest: Message<ExtensionRequest> = {
  typeName: "grpc.reflection.v1.ExtensionRequest",
  write(message, to) {
    if (message.containingType !== "") {
      to.string(10, message.containingType);
    }
    if (message.extensionNumber !== 0) {
      to.int32(16, message.extensionNumber);
    }
  },
  read(from, end, before) {
    let containingType = before === undefined ? "" : before.containingType;
    let extensionNumber = before === undefined ? 0 : before.extensionNumber;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          containingType = from.string();
          break;
        }
        case 16: {
          extensionNumber = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { containingType, extensionNumber };
  },
};

/** One answer. */
export type ServerReflectionResponse = {
  /** The host that was asked about. */
  readonly validHost: string;
  /** The question. */
  readonly originalRequest?: ServerReflectionRequest | undefined;
  /** The answer. */
  readonly messageResponse?:
    /** To the three questions for files. */
    | { readonly kind: "fileDescriptorResponse"; readonly value: FileDescriptorResponse }
    /** To all_extension_numbers_of_type. */
    | { readonly kind: "allExtensionNumbersResponse"; readonly value: ExtensionNumberResponse }
    /** To list_services. */
    | { readonly kind: "listServicesResponse"; readonly value: ListServiceResponse }
    /** There is no answer. */
    | { readonly kind: "errorResponse"; readonly value: ErrorResponse }
    | undefined;
};

export const ServerReflectionResponse: Message<ServerReflectionResponse> = {
  typeName: "grpc.reflection.v1.ServerReflectionResponse",
  write(message, to) {
    if (message.validHost !== "") {
      to.string(10, message.validHost);
    }
    if (message.originalRequest !== undefined) {
      const start = to.open(18);
      ServerReflectionRequest.write(message.originalRequest, to);
      to.close(start);
    }
    switch (message.messageResponse?.kind) {
      case "fileDescriptorResponse": {
        const start = to.open(34);
        FileDescriptorResponse.write(message.messageResponse.value, to);
        to.close(start);
        break;
      }
      case "allExtensionNumbersResponse": {
        const start = to.open(42);
        ExtensionNumberResponse.write(message.messageResponse.value, to);
        to.close(start);
        break;
      }
      case "listServicesResponse": {
        const start = to.open(50);
        ListServiceResponse.write(message.messageResponse.value, to);
        to.close(start);
        break;
      }
      case "errorResponse": {
        const start = to.open(58);
        ErrorResponse.write(message.messageResponse.value, to);
        to.close(start);
        break;
      }
    }
  },
  read(from, end, before) {
    let validHost = before === undefined ? "" : before.validHost;
    let originalRequest = before?.originalRequest;
    let messageResponse = before?.messageResponse;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          validHost = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          originalRequest = ServerReflectionRequest.read(from, stop, originalRequest);
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          messageResponse = { kind: "fileDescriptorResponse", value: FileDescriptorResponse.read(from, stop, messageResponse?.kind === "fileDescriptorResponse" ? messageResponse.value : undefined) };
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          messageResponse = { kind: "allExtensionNumbersResponse", value: ExtensionNumberResponse.read(from, stop, messageResponse?.kind === "allExtensionNumbersResponse" ? messageResponse.value : undefined) };
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          messageResponse = { kind: "listServicesResponse", value: ListServiceResponse.read(from, stop, messageResponse?.kind === "listServicesResponse" ? messageResponse.value : undefined) };
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          messageResponse = { kind: "errorResponse", value: ErrorResponse.read(from, stop, messageResponse?.kind === "errorResponse" ? messageResponse.value : undefined) };
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { validHost, originalRequest, messageResponse };
  },
};

/** A file, and the files that it imports if they were not sent on this stream before. */
export type FileDescriptorResponse = {
  /** Each a google.protobuf.FileDescriptorProto as bytes. */
  readonly fileDescriptorProto: readonly Uint8Array[];
};

export const FileDescriptorResponse: Message<FileDescriptorResponse> = {
  typeName: "grpc.reflection.v1.FileDescriptorResponse",
  write(message, to) {
    for (const one of message.fileDescriptorProto) {
      to.data(10, one);
    }
  },
  read(from, end, before) {
    const fileDescriptorProto: Uint8Array[] = before === undefined ? [] : (before.fileDescriptorProto as Uint8Array[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          fileDescriptorProto.push(from.data());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { fileDescriptorProto };
  },
};

/** The extensions of a message. */
export type ExtensionNumberResponse = {
  /** The full name of the message. */
  readonly baseTypeName: string;
  /** Their numbers, in no order. */
  readonly extensionNumber: readonly number[];
};

export const ExtensionNumberResponse: Message<ExtensionNumberResponse> = {
  typeName: "grpc.reflection.v1.ExtensionNumberResponse",
  write(message, to) {
    if (message.baseTypeName !== "") {
      to.string(10, message.baseTypeName);
    }
    if (message.extensionNumber.length > 0) {
      const start = to.open(18);
      for (const one of message.extensionNumber) to.plainInt32(one);
      to.close(start);
    }
  },
  read(from, end, before) {
    let baseTypeName = before === undefined ? "" : before.baseTypeName;
    const extensionNumber: number[] = before === undefined ? [] : (before.extensionNumber as number[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          baseTypeName = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            extensionNumber.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 16: {
          from.count();
          extensionNumber.push(from.int32());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { baseTypeName, extensionNumber };
  },
};

/** All services. */
export type ListServiceResponse = {
  /** Each of them. */
  readonly service: readonly ServiceResponse[];
};

export const ListServiceResponse: Message<ListServiceResponse> = {
  typeName: "grpc.reflection.v1.ListServiceResponse",
  write(message, to) {
    for (const one of message.service) {
      const start = to.open(10);
      ServiceResponse.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const service: ServiceResponse[] = before === undefined ? [] : (before.service as ServiceResponse[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          service.push(ServiceResponse.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { service };
  },
};

/** One service. */
export type ServiceResponse = {
  /** Its full name. */
  readonly name: string;
};

export const ServiceResponse: Message<ServiceResponse> = {
  typeName: "grpc.reflection.v1.ServiceResponse",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name };
  },
};

/** Why there is no answer. */
export type ErrorResponse = {
  /** A number of google.rpc.Code. */
  readonly errorCode: number;
  /** For developers. */
  readonly errorMessage: string;
};

export const ErrorResponse: Message<ErrorResponse> = {
  typeName: "grpc.reflection.v1.ErrorResponse",
  write(message, to) {
    if (message.errorCode !== 0) {
      to.int32(8, message.errorCode);
    }
    if (message.errorMessage !== "") {
      to.string(18, message.errorMessage);
    }
  },
  read(from, end, before) {
    let errorCode = before === undefined ? 0 : before.errorCode;
    let errorMessage = before === undefined ? "" : before.errorMessage;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          errorCode = from.int32();
          break;
        }
        case 18: {
          errorMessage = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { errorCode, errorMessage };
  },
};

/** Tells what the server offers. */
export const ServerReflection = {
  typeName: "grpc.reflection.v1.ServerReflection",
  methods: {
    /** One answer for each request, in their order. */
    serverReflectionInfo: {
      name: "ServerReflectionInfo",
      path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      request: ServerReflectionRequest,
      response: ServerReflectionResponse,
      streams: "both",
    },
  },
} as const satisfies Service;
