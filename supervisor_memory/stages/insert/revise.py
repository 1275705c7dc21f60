"""Change one record by hand: the changes behind `update` and `delete`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.arguments import as_importance, as_tags
from supervisor_memory.model.records import AuditEvent, Record, Source, check_content, content_hash
from supervisor_memory.ports import Deciding
from supervisor_memory.stages.insert.draft import embedded, expiry
from supervisor_memory.stages.insert.merge import JOINING, strategy_for
from supervisor_memory.stages.post_retrieval.quotable import SAID_KEPT, with_said_kept
from supervisor_memory.stages.pre_insert.extract import STEPS, describe
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.lessons.lesson import GUIDELINE, OWN_KEYS
from supervisor_memory.understand.lessons.wording import MOST_OF_IDENTITY, check_size, in_persons_words

SOURCE_WAS: Final = "source-was"
"""The key in an audit row's detail for a record's source class before its words were replaced."""


def revision(
    old: Record,
    content: str | None,
    metadata: Mapping[str, Any],
    *,
    merge: bool,
    actor: str,
    view: Deciding,
    source: Source | None = None,
) -> Commit | None:
    """The commit that gives a record another text or other metadata; None when nothing would change.

    Args:
        merge: True: `metadata` is laid over the old one, and its `strategy` joins the texts.
            False: both are replaced by what is given.
        source: Whose words the new text is, where the old one is the user's; None: whoever changes it vouches
            that it is still the user's. What others said stays theirs.

    Raises:
        InvalidContent: it is a guideline of a tool or says who an agent is, and a model would change it, or
            its lessons would be written by hand.
    """
    if is_for_people(old) and (source is not None or OWN_KEYS & metadata.keys()):
        raise for_people(old)
    asked = metadata.get("strategy", "overwrite") if merge else "overwrite"
    name, strategy = strategy_for(old.kind, asked)
    text = old.content if content is None else strategy(old, check_content(content), view.now, view.complete)
    kept = {**old.metadata, **metadata} if merge else dict(metadata or old.metadata)
    if (text, kept) == (old.content, dict(old.metadata)):
        return None
    is_own = is_for_people(old)
    if is_own:
        kept |= {name: old.metadata[name] for name in OWN_KEYS & old.metadata.keys()}
        if text != old.content:
            kept = in_a_persons_words(old, text, kept, view)
    new = replace(
        old,
        content=text,
        content_hash=content_hash(text),
        metadata=kept,
        tags=as_tags(metadata) or old.tags,
        importance=as_importance(metadata, otherwise=old.importance),
        updated_at=view.now,
        expires_at=expiry(old.kind, kept, view.now, view.settings) if "ttl" in metadata else old.expires_at,
    )
    if new.embedded_text != old.embedded_text:
        new = embedded(new, view)
    if text != old.content:
        by = source if source is not None and old.source.source_class == "user" else old.source
        new = replace(
            new if is_own else _with_new_subject(new, old, given=metadata), valid_from=view.now, source=by
        )
        new = new if name in JOINING else new.read_anew(None, replaces=True)
    change = Change(new, expects=old.version, changes_source=new.source != old.source)
    return Commit((change,), (_event("update", old, actor=actor, after=text, source=new.source),))


def is_for_people(record: Record) -> bool:
    """Whether people alone change a record: the guideline of a tool, or who an agent is."""
    return record.attribute == GUIDELINE and record.kind in ("experience", "identity")


def for_people(record: Record) -> InvalidContent:
    """The refusal of a change that a person has to make."""
    what = "who an agent is" if record.kind == "identity" else "what a tool taught"
    return InvalidContent(
        f"record {record.id} says {what}, which a person changes: its text by `memory.review.change`, "
        "or by `memory.experience.set_identity` and `withdraw`; its lessons and their counts are written by "
        "memory alone",
        id=record.id,
        kind=record.kind,
    )


def in_a_persons_words(old: Record, text: str, metadata: Mapping[str, Any], view: Deciding) -> dict[str, Any]:
    """The metadata of a guideline or an identity whose text a person changes.

    Raises:
        InvalidContent: the text is too long for the notes in which it would stand.
    """
    if old.kind == "identity":
        check_size(text, MOST_OF_IDENTITY, view.count_tokens, what="record of who an agent is")
        return dict(metadata)
    return in_persons_words(old.subject or "", text, metadata, at=view.now, count=view.count_tokens)


def _with_new_subject(new: Record, old: Record, *, given: Mapping[str, Any]) -> Record:
    """The record with its subject told anew; under its old one the next statement would replace it."""
    told = describe(new.content, kind=new.kind, source=new.source)
    kept = {name: value for name, value in new.metadata.items() if name != "value" or name in given}
    if told.value is not None:
        kept = {"value": told.value, **kept}
    if old.attribute == STEPS or (told.subject, told.attribute) == (old.subject, old.attribute):
        return replace(new, metadata=kept)
    return replace(new, metadata=kept, subject=None, attribute=None)


def deletion(records: Sequence[Record], *, now: float, actor: str, keep_said: bool = False) -> Commit:
    """The commit that deletes records; history keeps them. `keep_said`: their messages may still be told."""
    gone = (replace(each, status="deleted", updated_at=now, valid_to=now) for each in records)
    beside = {SAID_KEPT: True} if keep_said else None
    return Commit(
        tuple(Change(with_said_kept(r) if keep_said else r, expects=r.version) for r in gone),
        tuple(_event("delete", record, actor=actor, beside=beside) for record in records),
    )


def _event(
    op: str,
    old: Record,
    *,
    actor: str,
    after: str | None = None,
    source: Source | None = None,
    beside: Mapping[str, bool] | None = None,
) -> AuditEvent:
    by = old.source if source is None else source
    was = {} if by == old.source else {SOURCE_WAS: old.source.source_class}
    by = by if was else Source(by.source_class, session_id=by.session_id)
    return AuditEvent.of(
        op,
        old,
        source=by,
        actor=actor,
        version_before=old.version,
        version_after=old.version + 1,
        before=old.content,
        after=after,
        detail={"kind": old.kind, **was, **(beside or {})},
    )
