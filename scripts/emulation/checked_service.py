"""A service of the emulated AWS that is implemented here instead of in moto; requests and responses are validated against botocore's
model.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from moto.core.base_backend import BackendDict
from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS, RequestParserError
from moto.core.responses import BaseResponse
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from penstock.scripts.emulation.service_model_check import answer_faults, request_faults

Asked = Mapping[str, Any]
Answer = Mapping[str, Any]
# An operation: returns the response for the service's state in one account and region, and the validated parameters.
Operation = Callable[[Any, Asked], Answer]
Answered = tuple[int, dict[str, Any], str]

# Errors of resources named in a request's path: AWS also returns them for operations whose model does not list them.
NOT_FOUND = frozenset({"ResourceNotFoundException", "NotFoundException"})
# A request for an operation that is not implemented; clients do not retry it.
NOT_IMPLEMENTED = 501

_log = logging.getLogger(__name__)


class Refused(Exception):
    """An error response.

    Args:
        code: the error's name in the service's model.
        message: human-readable message.
        members: other members of the error, by their names in the model.
    """

    def __init__(self, code: str, message: str, **members: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.members = members


@dataclass(frozen=True)
class Place:
    """Location of a service's state.

    Args:
        account: the account's 12 digits.
        region: the region; for a global service, the region of the request.
        partition: the partition, such as ``aws``.
    """

    account: str
    region: str
    partition: str


class CheckedService:
    """A service.

    Args:
        name: botocore's name of the service, such as ``eks``.
        hosts: regular expression of its URLs.
        operations: operations by their names in the model.
        state: creates the empty state of an account and region.
        malformed: name of the error for a request that does not match the model.
    """

    def __init__(
        self, name: str, *, hosts: str, operations: Mapping[str, Operation], state: Callable[[Place], Any], malformed: str
    ) -> None:
        self.name = name
        self.operations = operations
        self.malformed = malformed
        self._hosts = hosts
        self._state = state
        self._backends: BackendDict[Any] | None = None

    def take_over(self, backends: BackendDict[Any]) -> None:
        """Route the service's requests from moto to this implementation.

        Args:
            backends: moto's own state of the service, which also holds the state here, so that moto's reset clears both.
        """
        urls = SimpleNamespace(url_bases=[self._hosts], url_paths={"{0}/$": self.answer, "{0}/.*$": self.answer})
        setattr(backends.backend, "_url_module", property(lambda backend: urls))  # noqa: B010
        self._backends = backends

    def state_of(self, place: Place) -> Any:
        """Return the service's state in one account and region."""
        if self._backends is None:
            raise AssertionError(f"{self.name} has not been taken over")
        regions = self._backends[place.account]
        held = vars(regions[place.region if place.region in regions else place.partition])
        if "penstock" not in held:
            held["penstock"] = self._state(place)
        return held["penstock"]

    def answer(self, request: Any, full_url: str, headers: Any) -> Answered:
        """Handle one request."""
        return _Exchange(self).answer(request, full_url, headers)


class _Exchange(BaseResponse):
    """One request and its response; moto determines the account, the region and the operation."""

    def __init__(self, service: CheckedService) -> None:
        super().__init__(service_name=service.name)
        self._service = service
        self._model = get_service_model(service.name)

    def answer(self, request: Any, full_url: str, headers: Any) -> Answered:
        self.setup_class(request, full_url, headers)
        name = self._get_action()
        if name not in self._service.operations:
            return self._not_implemented(name)
        operation = self._model.operation_model(name)
        try:
            asked = self._asked(operation)
            place = Place(self.current_account, self.region, self.partition)
            given = self._service.operations[name](self._service.state_of(place), asked)
        except Refused as refused:
            return self._refusal(refused, operation)
        return self._success(given, operation)

    def _asked(self, operation: OperationModel) -> Asked:
        request = self.normalized_request
        sent: Any = {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.data,
            "url_path": request.path,
            "url_params": self.uri_match,
        }
        try:
            asked: Asked = PROTOCOL_PARSERS[self._model.protocol](operation, map_type=dict).parse(sent)
        except (RequestParserError, AttributeError, TypeError, ValueError) as error:
            raise Refused(self._service.malformed, f"The request cannot be parsed: {error}") from error
        if faults := request_faults(asked, operation.input_shape):
            raise Refused(self._service.malformed, f"{operation.name}: {'; '.join(faults)}")
        return asked

    def _success(self, given: Answer, operation: OperationModel) -> Answered:
        if faults := answer_faults(given, operation.output_shape):
            return self._broken(operation, faults)
        serializer = get_serializer_class(self._model.service_name, self._model.protocol)(operation)
        answered = serializer.serialize(given)
        return answered["status_code"], {**self.response_headers, **answered["headers"]}, str(answered["body"])

    def _refusal(self, refused: Refused, operation: OperationModel) -> Answered:
        declared = {shape.name: shape for shape in (*operation.error_shapes, *_not_found(self._model.error_shapes))}
        shape = declared.get(refused.code)
        if shape is None:
            return self._broken(operation, [f"it refuses with {refused.code}, which is none of {', '.join(declared)}: {refused.message}"])
        names = {name.lower(): member.serialization.get("name", name) for name, member in shape.members.items()}
        said = {"message": refused.message, **refused.members}
        if unknown := sorted(name for name in said if name.lower() not in names):
            return self._broken(operation, [f"{refused.code} has no {', '.join(unknown)}"])
        body = {"__type": refused.code, **{names[name.lower()]: text for name, text in said.items()}}
        status = shape.metadata.get("error", {}).get("httpStatusCode", 400)
        return status, {**self.response_headers, "x-amzn-errortype": refused.code, "Content-Type": "application/json"}, json.dumps(body)

    def _broken(self, operation: OperationModel, faults: Sequence[str]) -> Answered:
        """A response that AWS would not return is a bug of the emulator; clients must not depend on it."""
        message = f"the emulator's answer to {operation.name} is none of AWS's: {'; '.join(faults)}"
        _log.error("%s", message)
        return self._failure(500, "InternalFailure", message)

    def _not_implemented(self, name: str | None) -> Answered:
        message = f"{self._service.name} {name or f'{self.method} {self.path}'} is not emulated"
        _log.error("%s", message)
        return self._failure(NOT_IMPLEMENTED, "NotImplemented", message)

    def _failure(self, status: int, code: str, message: str) -> Answered:
        headers = {**self.response_headers, "x-amzn-errortype": code, "Content-Type": "application/json"}
        return status, headers, json.dumps({"__type": code, "message": message})


def _not_found(shapes: Sequence[Any]) -> list[Any]:
    return [shape for shape in shapes if shape.name in NOT_FOUND]
