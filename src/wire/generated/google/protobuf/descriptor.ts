// Generated from proto/google/protobuf/descriptor.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";

/** Many files, each after those that it imports. */
export type FileDescriptorSet = {
  /** The files. */
  readonly file: readonly FileDescriptorProto[];
};

export const FileDescriptorSet: Message<FileDescriptorSet> = {
  typeName: "google.protobuf.FileDescriptorSet",
  write(message, to) {
    for (const one of message.file) {
      const start = to.open(10);
      FileDescriptorProto.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const file: FileDescriptorProto[] = before === undefined ? [] : (before.file as FileDescriptorProto[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          file.push(FileDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { file };
  },
};

/** One file. */
export type FileDescriptorProto = {
  /** Its path, as imports name it. */
  readonly name: string;
  /** The package that it declares things in. */
  readonly package: string;
  /** The paths that it imports. */
  readonly dependency: readonly string[];
  /** Its messages. */
  readonly messageType: readonly DescriptorProto[];
  /** Its enums. */
  readonly enumType: readonly EnumDescriptorProto[];
  /** Its services. */
  readonly service: readonly ServiceDescriptorProto[];
  /** "proto3", or nothing for proto2. */
  readonly syntax: string;
};

export const FileDescriptorProto: Message<FileDescriptorProto> = {
  typeName: "google.protobuf.FileDescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.package !== "") {
      to.string(18, message.package);
    }
    for (const one of message.dependency) {
      to.string(26, one);
    }
    for (const one of message.messageType) {
      const start = to.open(34);
      DescriptorProto.write(one, to);
      to.close(start);
    }
    for (const one of message.enumType) {
      const start = to.open(42);
      EnumDescriptorProto.write(one, to);
      to.close(start);
    }
    for (const one of message.service) {
      const start = to.open(50);
      ServiceDescriptorProto.write(one, to);
      to.close(start);
    }
    if (message.syntax !== "") {
      to.string(98, message.syntax);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let package_ = before === undefined ? "" : before.package;
    const dependency: string[] = before === undefined ? [] : (before.dependency as string[]);
    const messageType: DescriptorProto[] = before === undefined ? [] : (before.messageType as DescriptorProto[]);
    const enumType: EnumDescriptorProto[] = before === undefined ? [] : (before.enumType as EnumDescriptorProto[]);
    const service: ServiceDescriptorProto[] = before === undefined ? [] : (before.service as ServiceDescriptorProto[]);
    let syntax = before === undefined ? "" : before.syntax;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          package_ = from.string();
          break;
        }
        case 26: {
          from.count();
          dependency.push(from.string());
          break;
        }
        case 34: {
          const stop = from.enter();
          messageType.push(DescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          enumType.push(EnumDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          service.push(ServiceDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        case 98: {
          syntax = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, package: package_, dependency, messageType, enumType, service, syntax };
  },
};

/** A message. */
export type DescriptorProto = {
  /** Its name, without what it is declared in. */
  readonly name: string;
  /** Its fields. */
  readonly field: readonly FieldDescriptorProto[];
  /** Messages within it. */
  readonly nestedType: readonly DescriptorProto[];
  /** Enums within it. */
  readonly enumType: readonly EnumDescriptorProto[];
  /** What it is besides. */
  readonly options?: MessageOptions | undefined;
  /** Its oneofs; those that `optional` is made of come last. */
  readonly oneofDecl: readonly OneofDescriptorProto[];
};

export const DescriptorProto: Message<DescriptorProto> = {
  typeName: "google.protobuf.DescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    for (const one of message.field) {
      const start = to.open(18);
      FieldDescriptorProto.write(one, to);
      to.close(start);
    }
    for (const one of message.nestedType) {
      const start = to.open(26);
      DescriptorProto.write(one, to);
      to.close(start);
    }
    for (const one of message.enumType) {
      const start = to.open(34);
      EnumDescriptorProto.write(one, to);
      to.close(start);
    }
    if (message.options !== undefined) {
      const start = to.open(58);
      MessageOptions.write(message.options, to);
      to.close(start);
    }
    for (const one of message.oneofDecl) {
      const start = to.open(66);
      OneofDescriptorProto.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    const field: FieldDescriptorProto[] = before === undefined ? [] : (before.field as FieldDescriptorProto[]);
    const nestedType: DescriptorProto[] = before === undefined ? [] : (before.nestedType as DescriptorProto[]);
    const enumType: EnumDescriptorProto[] = before === undefined ? [] : (before.enumType as EnumDescriptorProto[]);
    let options = before?.options;
    const oneofDecl: OneofDescriptorProto[] = before === undefined ? [] : (before.oneofDecl as OneofDescriptorProto[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          field.push(FieldDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          nestedType.push(DescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          enumType.push(EnumDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          options = MessageOptions.read(from, stop, options);
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          oneofDecl.push(OneofDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, field, nestedType, enumType, options, oneofDecl };
  },
};

/** What a message is besides. */
export type MessageOptions = {
  /** An entry of a map field: not to be shown as a message. */
  readonly mapEntry: boolean;
};

export const MessageOptions: Message<MessageOptions> = {
  typeName: "google.protobuf.MessageOptions",
  write(message, to) {
    if (message.mapEntry) {
      to.bool(56, message.mapEntry);
    }
  },
  read(from, end, before) {
    let mapEntry = before === undefined ? false : before.mapEntry;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 56: {
          mapEntry = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { mapEntry };
  },
};

/** A field. */
export type FieldDescriptorProto = {
  /** Its name. */
  readonly name: string;
  /** Its number. */
  readonly number: number;
  /** 1 optional, 3 repeated. */
  readonly label: number;
  /** 1 double, 3 int64, 4 uint64, 5 int32, 8 bool, 9 string, 11 message, 12 bytes, 13 uint32, 14 enum. */
  readonly type: number;
  /** For messages and enums: the full name, with a dot before it. */
  readonly typeName: string;
  /** Its place in oneof_decl. */
  readonly oneofIndex?: number | undefined;
  /** Its name in JSON. */
  readonly jsonName: string;
  /** Written with `optional` in proto3. */
  readonly proto3Optional: boolean;
};

export const FieldDescriptorProto: Message<FieldDescriptorProto> = {
  typeName: "google.protobuf.FieldDescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.number !== 0) {
      to.int32(24, message.number);
    }
    if (message.label !== 0) {
      to.int32(32, message.label);
    }
    if (message.type !== 0) {
      to.int32(40, message.type);
    }
    if (message.typeName !== "") {
      to.string(50, message.typeName);
    }
    if (message.oneofIndex !== undefined) {
      to.int32(72, message.oneofIndex);
    }
    if (message.jsonName !== "") {
      to.string(82, message.jsonName);
    }
    if (message.proto3Optional) {
      to.bool(136, message.proto3Optional);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let number = before === undefined ? 0 : before.number;
    let label = before === undefined ? 0 : before.label;
    let type = before === undefined ? 0 : before.type;
    let typeName = before === undefined ? "" : before.typeName;
    let oneofIndex = before?.oneofIndex;
    let jsonName = before === undefined ? "" : before.jsonName;
    let proto3Optional = before === undefined ? false : before.proto3Optional;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 24: {
          number = from.int32();
          break;
        }
        case 32: {
          label = from.int32();
          break;
        }
        case 40: {
          type = from.int32();
          break;
        }
        case 50: {
          typeName = from.string();
          break;
        }
        case 72: {
          oneofIndex = from.int32();
          break;
        }
        case 82: {
          jsonName = from.string();
          break;
        }
        case 136: {
          proto3Optional = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, number, label, type, typeName, oneofIndex, jsonName, proto3Optional };
  },
};

/** A oneof. */
export type OneofDescriptorProto = {
  /** Its name. */
  readonly name: string;
};

export const OneofDescriptorProto: Message<OneofDescriptorProto> = {
  typeName: "google.protobuf.OneofDescriptorProto",
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

/** An enum. */
export type EnumDescriptorProto = {
  /** Its name. */
  readonly name: string;
  /** Its values. */
  readonly value: readonly EnumValueDescriptorProto[];
};

export const EnumDescriptorProto: Message<EnumDescriptorProto> = {
  typeName: "google.protobuf.EnumDescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    for (const one of message.value) {
      const start = to.open(18);
      EnumValueDescriptorProto.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    const value: EnumValueDescriptorProto[] = before === undefined ? [] : (before.value as EnumValueDescriptorProto[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          value.push(EnumValueDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, value };
  },
};

/** A value of an enum. */
export type EnumValueDescriptorProto = {
  /** Its name. */
  readonly name: string;
  /** Its number. */
  readonly number?: number | undefined;
};

export const EnumValueDescriptorProto: Message<EnumValueDescriptorProto> = {
  typeName: "google.protobuf.EnumValueDescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.number !== undefined) {
      to.int32(16, message.number);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let number = before?.number;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 16: {
          number = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, number };
  },
};

/** A service. */
export type ServiceDescriptorProto = {
  /** Its name. */
  readonly name: string;
  /** Its methods. */
  readonly method: readonly MethodDescriptorProto[];
};

export const ServiceDescriptorProto: Message<ServiceDescriptorProto> = {
  typeName: "google.protobuf.ServiceDescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    for (const one of message.method) {
      const start = to.open(18);
      MethodDescriptorProto.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    const method: MethodDescriptorProto[] = before === undefined ? [] : (before.method as MethodDescriptorProto[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          method.push(MethodDescriptorProto.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, method };
  },
};

/** A method. */
export type MethodDescriptorProto = {
  /** Its name. */
  readonly name: string;
  /** The full name of the request, with a dot before it. */
  readonly inputType: string;
  /** The full name of the response, with a dot before it. */
  readonly outputType: string;
  /** The caller sends many. */
  readonly clientStreaming: boolean;
  /** The server sends many. */
  readonly serverStreaming: boolean;
};

export const MethodDescriptorProto: Message<MethodDescriptorProto> = {
  typeName: "google.protobuf.MethodDescriptorProto",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.inputType !== "") {
      to.string(18, message.inputType);
    }
    if (message.outputType !== "") {
      to.string(26, message.outputType);
    }
    if (message.clientStreaming) {
      to.bool(40, message.clientStreaming);
    }
    if (message.serverStreaming) {
      to.bool(48, message.serverStreaming);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let inputType = before === undefined ? "" : before.inputType;
    let outputType = before === undefined ? "" : before.outputType;
    let clientStreaming = before === undefined ? false : before.clientStreaming;
    let serverStreaming = before === undefined ? false : before.serverStreaming;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          inputType = from.string();
          break;
        }
        case 26: {
          outputType = from.string();
          break;
        }
        case 40: {
          clientStreaming = from.bool();
          break;
        }
        case 48: {
          serverStreaming = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, inputType, outputType, clientStreaming, serverStreaming };
  },
};
