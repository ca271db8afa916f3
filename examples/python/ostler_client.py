"""A client of Ostler in Python: no code is generated, the protocol comes from `ostler api descriptor`."""

import json
import os
import secrets
import subprocess
import time
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

PACKAGE = "ostler.v1"


def control_socket() -> Path:
    """Where the daemon listens: its own file says so, else it is at its usual place."""
    env = os.environ
    if home := env.get("OSTLER_HOME"):
        state, run = Path(home) / "state", Path(home) / "run"
    else:
        state = Path(env.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "ostler"
        run = Path(env.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "ostler"
    try:
        return Path(json.loads((state / "daemon.json").read_text())["socket"])
    except FileNotFoundError:
        return run / "control.sock"


class Refused(Exception):
    """The daemon's answer, with the stable reason that docs/errors.md lists and commands to try."""

    def __init__(self, reason: str, message: str, hints: list[str]):
        super().__init__(f"{message} [{reason}]")
        self.reason, self.hints = reason, hints


def refusal(error: grpc.RpcError) -> Exception:
    """The refusal that a status carries; a status without one is about the connection."""
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for detail in Status.FromString(value).details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == "ostler":
                hints = [value for key, value in sorted(info.metadata.items()) if key.endswith("_command")]
                return Refused(info.reason, error.details(), hints)
    return error


class Ostler:
    """Every method of every service, by its name: `ostler.call("SessionService", "ListSessions", limit=10)`."""

    def __init__(self, ostler: str = "ostler", socket: Path | None = None):
        described = subprocess.run([ostler, "api", "descriptor"], check=True, capture_output=True).stdout
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(described).file:
            pool.Add(file)
        self._pool = pool
        # Left to itself grpcio would name the socket's path as the authority, which is none to HTTP/2.
        options = [("grpc.default_authority", "localhost")]
        self._channel = grpc.insecure_channel(f"unix:{socket or control_socket()}", options)

    def _method(self, service: str, method: str):
        found = self._pool.FindServiceByName(f"{PACKAGE}.{service}").methods_by_name[method]
        request = message_factory.GetMessageClass(found.input_type)
        answer = message_factory.GetMessageClass(found.output_type)
        kind = self._channel.unary_stream if found.server_streaming else self._channel.unary_unary
        path = f"/{PACKAGE}.{service}/{method}"
        return kind(path, request_serializer=request.SerializeToString, response_deserializer=answer.FromString), request

    def call(self, service: str, method: str, **fields):
        """Asks, and returns the answer."""
        stub, request = self._method(service, method)
        try:
            return stub(request(**fields), timeout=60)
        except grpc.RpcError as error:
            raise refusal(error) from None

    def change(self, service: str, method: str, **fields):
        """Asks for a change. It carries an id of its own, so that asking again does it once."""
        fields.setdefault("request_id", request_id())
        for wait in (0.1, 0.5, 2, None):
            try:
                return self.call(service, method, **fields)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or wait is None:
                    raise
                time.sleep(wait)

    def events(self, session: str, after: int = 0):
        """All events of a session, then those to come. A daemon that restarts in between is asked on from the cursor."""
        while True:
            stub, request = self._method("EventService", "WatchEvents")
            try:
                for answer in stub(request(filter={"session": session}, after=after)):
                    yield from answer.events
                    after = max(after, answer.seen)
                return
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise refusal(error) from None
                time.sleep(0.2)


def request_id() -> str:
    """`req_` and a ULID: 48 bits of time and 80 of chance, in Crockford's letters."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "req_" + "".join(letters[number >> (5 * place) & 31] for place in reversed(range(26)))
