"""Parts of the document that have one of several kinds, identified by a key: ``kafka: {...}``, ``files: {...}``.

Such a part is a union with one model per kind, annotated with `OneKind`. Pydantic selects the model by the key, and its findings include
the model in their location, as for any union; `penstock.jobs.document` and `penstock.jobs.findings` remove it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import getdoc
from typing import Annotated, Any, Union, cast, get_args, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from penstock.jobs.spec.part import Part, exactly_one

_ARGUMENTS = "\n\nArgs:\n"


def keys_of(union: Any) -> list[str]:
    """The keys that identify the kinds of a union with `OneKind`, in its order."""
    return list(_by_key(get_args(get_args(union)[0])))


@dataclass(frozen=True)
class OneKind:
    """Makes a union of parts a tagged union, discriminated by the key that each part has alone.

    A document with none of these keys, or with several, is validated against the fields of all kinds, so that every error in it is
    reported; the JSON Schema for editors has the same fields. A key whose value is null is treated as missing.

    Args:
        name: name of the part in the JSON Schema.
        summary: description for editors.
    """

    name: str
    summary: str

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds = _Kinds(self, get_args(union))
        tagged: Any = Union[tuple(Annotated[kind, Tag(_tag(kind))] for kind in kinds.models)]  # noqa: UP007 - the members are in a tuple.
        discriminated: Any = Annotated[tagged, Discriminator(kinds.tag), BeforeValidator(kinds.alone), kinds]
        return handler.generate_schema(discriminated)


@dataclass(frozen=True)
class _Kinds:
    """The models of a union, and the model of all their fields."""

    part: OneKind
    models: tuple[type[Part], ...]

    @cached_property
    def by_key(self) -> dict[str, type[Part]]:
        return _by_key(self.models)

    @cached_property
    def together(self) -> type[Part]:
        """A model with the fields of all kinds, each optional, that accepts no document."""
        hints = {name: hint for model in self.models for name, hint in _fields(model).items()}
        keys = list(self.by_key)
        fields: dict[str, Any] = {name: (hints[name] | None, None) for name in dict.fromkeys([*keys, *hints])}
        arguments = "".join((getdoc(model) or "").partition(_ARGUMENTS)[2].rstrip() + "\n" for model in self.models).strip("\n")

        def refused(made: Part) -> Part:
            exactly_one(**{key: getattr(made, key) for key in keys})
            return made

        return create_model(
            self.part.name,
            __base__=Part,
            __doc__=self.part.summary + (_ARGUMENTS + arguments if arguments else ""),
            __validators__={"refused": cast("Callable[..., Any]", model_validator(mode="after")(refused))},
            **fields,
        )

    def alone(self, value: Any) -> Any:
        """A document's part, with the key of exactly one kind.

        Raises:
            ValidationError: it has none, or several; or it is not a mapping.
        """
        if isinstance(value, BaseModel):
            return value
        given = [key for key in self.by_key if isinstance(value, Mapping) and value.get(key) is not None]
        if len(given) != 1:
            return self.together.model_validate(value)
        return {key: field for key, field in value.items() if key in given or key not in self.by_key}

    def tag(self, value: Any) -> str:
        """The name of a part's model; `alone` ensures that it has one."""
        return _tag(type(value) if isinstance(value, BaseModel) else next(model for key, model in self.by_key.items() if key in value))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(core_schema.no_info_before_validator_function(self.alone, self.together.__pydantic_core_schema__))


def _tag(model: type[BaseModel]) -> str:
    """The element for a model of the union in the location of pydantic's findings, which is not a key of the document."""
    return f"<{model.__name__}>"


def _by_key(models: Sequence[type[Part]]) -> dict[str, type[Part]]:
    """Key -> the only model that has it."""
    shared = set.intersection(*(set(model.model_fields) for model in models))
    return {key: model for model in models for key in model.model_fields if key not in shared}


def _fields(model: type[Part]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}
