"""The work protocol from Python, without generated code.

A node tells its own .proto files by gRPC reflection. They become message classes here, so that all one needs is the
packages `grpcio` and `protobuf`, and the protocol is always the one that the node speaks.
"""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "millrace.work.v1.Work"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

# It may or may not have been done: said again in the same words, it is done once.
TRANSIENT = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
# No use in asking again: the caller itself is wrong.
HOPELESS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
}


class CallError(Exception):
    """A call that brought no answer. Compare `reason` (see docs/reference/work-protocol.md), never the message."""

    def __init__(self, method, code, message, reason):
        super().__init__(f"{method}: {reason or code.name}: {message}")
        self.reason = reason
        self.transient = code in TRANSIENT
        self.hopeless = code in HOPELESS


class Node:
    """A node's port. Any node answers for all shards, so one is enough to know; a lost connection is made again."""

    def __init__(self, address, token=None, ca=None):
        options = [
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.min_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 5_000),
            ("grpc.keepalive_time_ms", 30_000),
        ]
        if ca:
            credentials = grpc.ssl_channel_credentials(root_certificates=ca)
            self._channel = grpc.aio.secure_channel(address, credentials, options)
        else:
            self._channel = grpc.aio.insecure_channel(address, options)
        self.use_token(token)
        self._pool = descriptor_pool.DescriptorPool()
        self._methods = {}

    def use_token(self, token):
        """For the calls that begin from now on."""
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()

    async def close(self):
        await self._channel.close()

    async def learn(self, timeout=10):
        """Asks the node for its protocol. Needed once, before the first call."""
        request_type, response_type = _reflection_messages()
        reflect = self._channel.stream_stream(
            REFLECTION, request_type.SerializeToString, response_type.FromString
        )
        asked = [request_type(file_containing_symbol=name) for name in (SERVICE, "google.rpc.ErrorInfo")]
        files = {}
        try:
            # Waits for a busy node: one attempt to connect is given up after the short time of the options above.
            answers = reflect(iter(asked), timeout=timeout, metadata=self._metadata, wait_for_ready=True)
            async for answer in answers:
                for data in answer.file_descriptor_response.file_descriptor_proto:
                    files[descriptor_pb2.FileDescriptorProto.FromString(data).name] = data
        except grpc.aio.AioRpcError as error:
            raise self._explained("reflection", error) from None
        for data in files.values():  # each comes after those that it imports
            self._pool.AddSerializedFile(data)
        self._methods = dict(self._pool.FindServiceByName(SERVICE).methods_by_name)

    async def call(self, name, /, timeout=10, **fields):
        """One request, one answer. Nested messages may be given as dicts, and enums by their names."""
        method = self._methods[name]
        invoke = self._channel.unary_unary(*self._wiring(method))
        try:
            return await invoke(_class_of(method.input_type)(**fields), timeout=timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise self._explained(name, error) from None

    async def stream(self, name, /, **fields):
        """One request, many answers."""
        method = self._methods[name]
        invoke = self._channel.unary_stream(*self._wiring(method))
        try:
            async for answer in invoke(_class_of(method.input_type)(**fields), metadata=self._metadata):
                yield answer
        except grpc.aio.AioRpcError as error:
            raise self._explained(name, error) from None

    def enum_name(self, enum, value):
        return self._pool.FindEnumTypeByName(f"millrace.work.v1.{enum}").values_by_number[value].name

    def _wiring(self, method):
        serialize = _class_of(method.input_type).SerializeToString
        return f"/{SERVICE}/{method.name}", serialize, _class_of(method.output_type).FromString

    def _explained(self, method, error):
        return CallError(method, error.code(), error.details(), self._reason_of(error))

    def _reason_of(self, error):
        """Why a call was refused: the reason in the google.rpc.ErrorInfo of its status."""
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin" and self._methods:
                status = self._class_named("google.rpc.Status").FromString(value)
                for detail in status.details:
                    if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                        return self._class_named("google.rpc.ErrorInfo").FromString(detail.value).reason
        return None

    def _class_named(self, name):
        return _class_of(self._pool.FindMessageTypeByName(name))


def job_name(shard, job):
    """A job as people write it, and as `millrace job show` takes it."""
    return f"j{_base36(shard)}-{_base36(job)}"


def task_name(shard, task):
    return f"t{_base36(shard)}-{_base36(task)}"


def _base36(number):
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if number == 0:
            return digits


def _class_of(descriptor):
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory().GetPrototype(descriptor)  # protobuf before 4.22


def _reflection_messages():
    """The two messages that reflection is asked and answers with: the part of them that is used here."""
    file = descriptor_pb2.FileDescriptorProto(name="reflection.proto", package="grpc.reflection.v1", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    request = file.message_type.add(name="ServerReflectionRequest")
    request.field.add(name="file_containing_symbol", number=4, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    files = file.message_type.add(name="FileDescriptorResponse")
    files.field.add(name="file_descriptor_proto", number=1, type=field.TYPE_BYTES, label=field.LABEL_REPEATED)
    response = file.message_type.add(name="ServerReflectionResponse")
    response.field.add(
        name="file_descriptor_response",
        number=4,
        type=field.TYPE_MESSAGE,
        type_name=".grpc.reflection.v1.FileDescriptorResponse",
        label=field.LABEL_OPTIONAL,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"grpc.reflection.v1.{name}") for name in (request.name, response.name))
    return tuple(_class_of(descriptor) for descriptor in found)
