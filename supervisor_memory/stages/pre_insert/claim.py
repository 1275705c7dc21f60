"""The schema for an item proposed by a model or an extractor, and the checks it has to pass."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import Kind, check_content
from supervisor_memory.understand.statements import normal

MAX_CLAIM = 2_000
"""Characters of one statement."""
_MAX_NAME = 128
_MOST_READ = 10 * _MAX_NAME  # characters of a name, of which the first are kept
_USUAL_CONFIDENCE = 0.8
_MOST_RELATIONS = 16
Triple: TypeAlias = tuple[str, str, str]
"""Source, relationship, destination."""


class Unusable(ValueError):
    """An item is not taken; the error's text is a code for the audit."""


def _kind(given: object) -> object:
    return given.strip().casefold().replace("_", "-") if isinstance(given, str) else given


def _name(given: object) -> str | None:
    """Normalise a name as subjects are; None: the value is no name."""
    name = normal(given[:_MOST_READ]).casefold() if isinstance(given, str) else ""
    return name[:_MAX_NAME] or None


def _confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
        return _USUAL_CONFIDENCE
    return min(max(float(given), 0.0), 1.0)


def _relations(given: object) -> tuple[Triple, ...]:
    """Read the relations of a list; other items are left out."""
    rows = given if isinstance(given, (list, tuple)) else ()
    return tuple(
        (row[0].strip(), row[1].strip(), row[2].strip())
        for row in rows[:_MOST_RELATIONS]
        if isinstance(row, (list, tuple))
        and [*map(type, row)] == [str, str, str]
        and all(0 < len(each.strip()) <= _MAX_NAME for each in row)
    )


Name = Annotated[str | None, BeforeValidator(_name)]


class Claim(BaseModel):
    """A statement with its kind. Further fields count if they are valid; unknown keys are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    content: Annotated[str, StringConstraints(max_length=MAX_CLAIM)]
    kind: Annotated[Kind, BeforeValidator(_kind)]
    subject: Name = None
    attribute: Name = None
    value: Name = None
    confidence: Annotated[float, BeforeValidator(_confidence)] = _USUAL_CONFIDENCE

    @property
    def named(self) -> dict[str, str]:
        """Subject, attribute and value; empty unless both subject and attribute are given."""
        told = {"subject": self.subject, "attribute": self.attribute, "value": self.value}
        given = {name: each for name, each in told.items() if each is not None}
        return given if self.subject and self.attribute else {}


class Operation(Claim):
    """A change that a model asks for. `id` is a record it was shown, `quote` the words that say so, `by` the
    specialist whose prompt asked for it, `relations` how what it names is related."""

    do: Annotated[Literal["add", "update", "delete", "nothing"], BeforeValidator(_kind)] = "add"
    id: str | None = None
    content: Annotated[str, StringConstraints(max_length=MAX_CLAIM)] = ""
    kind: Annotated[Kind, BeforeValidator(_kind)] = "domain-facts"
    quote: Annotated[str, StringConstraints(max_length=MAX_CLAIM)] = ""
    scope: Name = None
    by: Name = None
    relations: Annotated[tuple[Triple, ...], BeforeValidator(_relations)] = ()


C = TypeVar("C", bound=Claim)


def read_claim(item: Mapping[Any, Any], form: type[C]) -> C:
    """The item as a claim that can be stored.

    Raises:
        Unusable: it is none.
    """
    plain = {name: each for name in form.model_fields if (each := item.get(name)) is not None}
    try:
        claim = form.model_validate(plain)
        if isinstance(claim, Operation) and claim.do in ("delete", "nothing"):
            return claim
        return claim.model_copy(update={"content": check_content(claim.content)})
    except ValidationError as error:
        is_too_long = error.errors(include_url=False)[0]["type"] == "string_too_long"
        raise Unusable("too-long" if is_too_long else "malformed") from error
    except InvalidContent as error:
        raise Unusable("malformed") from error
