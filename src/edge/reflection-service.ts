/** grpc.reflection: what is served here, for tools without our .proto files. v1 and v1alpha have the same messages. */
import { grpcCode } from "#grpc/status.ts";
import type { DuplexHandler } from "#grpc/service.ts";
import { describedFiles, findFile, findSymbol, withImports, type DescribedFile } from "#wire/descriptors.ts";
import type {
  ServerReflectionRequest,
  ServerReflectionResponse,
} from "#wire/generated/grpc/reflection/v1/reflection.ts";

type Answer = NonNullable<ServerReflectionResponse["messageResponse"]>;

export function reflectionHandler<P>(
  services: () => readonly string[],
): DuplexHandler<ServerReflectionRequest, ServerReflectionResponse, P> {
  return async function* reflect(requests) {
    for await (const request of requests)
      yield { validHost: request.host, originalRequest: request, messageResponse: answerTo(request, services()) };
  };
}

function answerTo({ messageRequest: question }: ServerReflectionRequest, services: readonly string[]): Answer {
  switch (question?.kind) {
    case "listServices":
      return { kind: "listServicesResponse", value: { service: services.map((name) => ({ name })) } };
    case "fileByFilename":
      return filesOr(findFile(question.value), question.value);
    case "fileContainingSymbol":
      return filesOr(findSymbol(question.value), question.value);
    case "allExtensionNumbersOfType":
      return { kind: "allExtensionNumbersResponse", value: { baseTypeName: question.value, extensionNumber: [] } };
    default:
      return notFound("there are no extensions here");
  }
}

const filesOr = (file: DescribedFile | undefined, name: string): Answer =>
  file
    ? {
        kind: "fileDescriptorResponse",
        value: { fileDescriptorProto: withImports(file).map(({ bytes }) => bytes) },
      }
    : notFound(`nothing here is called ${name}; there are ${describedFiles().length} files`);

const notFound = (errorMessage: string): Answer => ({
  kind: "errorResponse",
  value: { errorCode: grpcCode.notFound, errorMessage },
});
