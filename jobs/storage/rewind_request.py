"""What an operator has asked of a job that is deployed: that it begins anew from some point on or starts from a savepoint, or that this is
undone.

It is in the job's folder, and the driver reads it when it starts. It is for the generation after one that it names, and so it is obeyed
once: the next generation that begins, whatever it does, is the end of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.objects import Objects

_NAME = "rewind.json"

# Where a job begins to read its topics: at their first records, at their ends, as the spec's ``startingOffsets`` say, or at a time in epoch
# milliseconds.
NamedStart = Literal["earliest", "latest", "spec"]
StartPoint = Annotated[int, Field(ge=0)] | NamedStart


class RewindRequest(BaseModel):
    """A rewind, its undo, or a start from a savepoint: exactly one of ``to``, ``back_to`` and ``start_from``.

    Args:
        after: number of the job's newest generation when it was asked for; it is obeyed as long as that is the newest one.
        to: where the job begins to read, with an empty checkpoint.
        back_to: number of the generation whose checkpoint the job goes back to.
        start_from: the savepoint, ``s3a://bucket/folder``.
        offsets: where the topics are read on at, instead of at the savepoint's offsets; None: at those.
        of_another_job: whether the savepoint may be another job's.
        allow_non_restored_state: whether the savepoint may have queries that the app does not have.
        spec_rewind_to: the spec's ``rewindTo`` at that time: another one is newer than this request.
        asked: when, by the clock of who asked; for people only.
        by: who asked; for people only.
    """

    # What a later release may ask for is refused: a driver must not do something else instead.
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    after: int = Field(ge=1)
    to: StartPoint | None = None
    back_to: int | None = Field(default=None, ge=1)
    start_from: str | None = None
    offsets: InitialOffsets | None = None
    of_another_job: bool = False
    allow_non_restored_state: bool = False
    spec_rewind_to: int | None = Field(default=None, ge=0)
    asked: datetime
    by: str | None = None

    @model_validator(mode="after")
    def _one_of_all(self) -> RewindRequest:
        if sum(one is not None for one in (self.to, self.back_to, self.start_from)) != 1:
            raise ValueError("exactly one of to, backTo and startFrom")
        if self.offsets is not None and self.start_from is None:
            raise ValueError("offsets only with startFrom")
        return self

    def same_as(self, other: RewindRequest | None) -> bool:
        """Whether another one asks for the same, whoever asked for it and when."""
        if other is None or (self.after, self.to, self.back_to, self.start_from) != (
            other.after,
            other.to,
            other.back_to,
            other.start_from,
        ):
            return False
        # A request that was refused is another one with the consent that it lacked, or with other offsets.
        with_it = self.offsets, self.of_another_job, self.allow_non_restored_state
        return with_it == (other.offsets, other.of_another_job, other.allow_non_restored_state)


class RewindRequestFile(Objects):
    """Where the request is: ``penstock/rewind.json`` in the job's folder.

    Args:
        uri: the job's folder, ``s3a://bucket/folder``.
    """

    def read(self) -> RewindRequest | None:
        """The last request, obeyed or not; None if there has been none.

        Raises:
            CheckpointDamaged: JOB-008, it can't be read.
            BucketUnreachable: JOB-009.
        """
        text = self.get(_NAME)
        return None if text is None else self._parsed(text)

    def replace(self, before: RewindRequest | None, request: RewindRequest) -> bool:
        """Writes a request, atomically.

        Args:
            before: as it was read; None for none.
            request: instead of it.

        Returns:
            Whether it is written; False if another one has been meanwhile.

        Raises:
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        # Without what it does not ask for: an earlier release refuses a field that it does not know.
        text = request.model_dump_json(by_alias=True, indent=1, exclude_none=True)
        if before is None:
            return self.put_once(_NAME, text)
        stored = self._with_etag(self._key(_NAME))
        if stored is None or self._parsed(stored[0]) != before:
            return False
        return self._conditionally(lambda writer: writer.replace(self._key(_NAME), text.encode(), stored[1])) is not None

    def withdraw(self, request: RewindRequest) -> None:
        """Deletes a request, unless another one has taken its place.

        Raises:
            BucketUnreachable: JOB-009.
        """
        if request.same_as(self.read()):
            self.delete(_NAME)

    def _parsed(self, text: str) -> RewindRequest:
        try:
            return RewindRequest.model_validate_json(text)
        except ValidationError as error:
            raise CheckpointDamaged(
                path=f"{self.uri}/penstock/{_NAME}",
                given=error.errors()[0]["msg"],
                need="a request as penstock rewind or savepoint of this or an earlier release writes it",
                fix="delete the object, and ask for the rewind again; a newer release may have written it: then deploy that one",
            ) from error
