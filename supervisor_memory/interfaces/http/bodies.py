"""The bodies of requests; they are read strictly, so that a misspelled key is an error."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from supervisor_memory.model.records import Kind, Layer, SourceClass
from supervisor_memory.review.promotion import OnErase

_Id = Annotated[str, Field(max_length=200)]
Time = float | str
"""Seconds since 1970, or ISO 8601."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Message(_Body):
    role: str = Field(description="user, assistant, tool or system.", max_length=40)
    content: str
    name: str | None = Field(default=None, description="The agent's name, where an agent said it.")


class Add(_Body):
    """A text, or messages, from which the statements worth keeping are remembered."""

    messages: str | list[Message] | None = None
    text: str | None = Field(default=None, description="One statement, remembered as it is.")
    user_id: str | None = Field(
        default=None, description="Whose memory; may be left out where the token has one."
    )
    metadata: dict[str, Any] | None = None
    infer: bool = Field(default=True, description="false: each text is kept verbatim; nothing is merged.")
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    task: str | None = None
    created_at: Time | None = Field(default=None, description="When it was said; now where it is missing.")
    kind: Kind | None = Field(default=None, description="Of a text; told by rules where it is missing.")
    source_class: SourceClass = Field(default="user", description="Who brought the text.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "Add":
        if (self.messages is None) == (self.text is None):
            raise ValueError("send either text or messages")
        return self


class Search(_Body):
    query: str
    user_id: str | None = Field(
        default=None, description="Whose memory; may be left out where the token has one."
    )
    limit: int | None = Field(
        default=None, ge=1, le=1000, description="Most hits; MEMORY_TOP_K where it is missing."
    )
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Least relevance; MEMORY_MIN_SCORE."
    )
    families: list[str] | None = Field(default=None, description="Only these; all but session messages.")
    layers: list[Layer] | None = Field(default=None, description="history: session messages too.")
    where: dict[str, Any] | None = Field(default=None, description="kind, tags, session, agent, since, …")
    agent_id: str | None = None
    session_id: str | None = None
    task: str | None = None
    as_of: Time | None = Field(default=None, description="What was valid then.")
    explain: bool = Field(default=False, description="Whether to tell what became of each candidate.")


class Change(_Body):
    content: str | None = None
    metadata: dict[str, Any] | None = None
    merge: bool = Field(default=True, description="false: content and metadata are replaced, not laid over.")

    @model_validator(mode="after")
    def _require_a_change(self) -> "Change":
        if self.content is None and self.metadata is None:
            raise ValueError("send content, metadata or both")
        return self


class Revert(_Body):
    version: int = Field(ge=1, le=2**31, description="As the history numbers them.")


class Edit(_Body):
    content: str = Field(description="What to remember instead.")


class Reject(_Body):
    reason: str = Field(
        default="", description="Why, for who looks later; the first 1,000 characters are kept."
    )


class Promote(_Body):
    on_erase: OnErase = Field(description="What becomes of it when its author is erased.")
    names_ok: list[str] = Field(default=[], description="What of the preview's names is no person.")
    version: int | None = Field(
        default=None, ge=1, le=2**31, description="That of the record in the preview; missing: any."
    )


class Undo(_Body):
    id: _Id = Field(description="A record's.")
    version: int | None = Field(
        default=None,
        ge=1,
        le=2**31,
        description="Go back to this version; missing: bring back what was set aside.",
    )


class Sweep(_Body):
    """Selects among a user's records: at least one condition, and all given ones must hold."""

    source: SourceClass | None = Field(default=None, description="Only what is said by this class.")
    run_id: str | None = Field(default=None, description="Only of this run.")
    session_id: str | None = Field(default=None, description="Only of this session.")
    agent_id: str | None = Field(default=None, description="Only of this agent.")
    since: Time | None = Field(default=None, description="Only what was said or recorded from then on.")
    until: Time | None = Field(default=None, description="Only what was said or recorded before.")
    confirm: StrictBool = Field(default=False, description="true: do it. false: only tell what it would do.")


class Rate(_Body):
    run_id: _Id = Field(description="LangGraph's id of the run.")
    score: float = Field(ge=0, le=1, description="From 0, it failed, to 1, it was right.")
    error: str | None = Field(default=None, description="What was wrong; that there was one is kept.")


class ChangeSession(_Body):
    name: str | None = Field(default=None, description="Its new name.")
    closed: Literal[True] | None = Field(default=None, description="true: end it. A message opens it again.")


class Erase(_Body):
    confirm: StrictBool = Field(
        default=False, description="true: for good. false: only tell how much it would be."
    )
