"""Reasons against sharing a text with a team: personal data, secrets, names of people."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final
from unicodedata import normalize

from supervisor_memory.errors import SettingsError
from supervisor_memory.language.unseen import visible
from supervisor_memory.model.records import TEAM, Record
from supervisor_memory.ports import Services
from supervisor_memory.redact.redactor import Redactor, open_redactor
from supervisor_memory.stages.retrieval.shared import SHARED_KINDS
from supervisor_memory.understand.entities import entities
from supervisor_memory.understand.lessons.lesson import GUIDELINE, lessons_of
from supervisor_memory.understand.names import named_people

_PEOPLE: Final = ("person", "name")


def unfit(versions: Iterable[Record], services: Services, names_ok: Collection[str]) -> str | None:
    """Why a record from a file may not be shared with a team, as a sentence; None: it may be.

    It is what a promotion would refuse, in any of its versions.
    """
    users = {each for each in services.backend.audit.users() if not each.startswith(TEAM)}
    for record in versions:
        source = record.source
        if record.kind not in SHARED_KINDS or record.layer != "abstract":
            return f"it is of the kind {record.kind} ({record.layer}), of which nothing is shared with a team"
        if record.tags or any((source.session_id, source.run_id, source.message_id)):
            return "it has tags, or names a session or a run, and no promotion leaves these"
        texts = texts_of(record)
        try:
            personal = personal_in(texts, services)
        except SettingsError as error:
            return str(error)
        if personal:
            return f"it holds personal data ({', '.join(personal)}), and a team would read it"
        if names := [each for each in people_in(texts, users, record) if each not in names_ok]:
            return f"it names {', '.join(names)}; where these are no people, pass them as names_ok"
    return None


def texts_of(shared: Record) -> Sequence[str]:
    """All texts of a shared record that its readers can see."""
    told: list[str | None] = [shared.content, shared.subject, shared.attribute, shared.use_when, shared.task]
    told.append(shared.source.agent_id)
    for each in lessons_of(shared.metadata):
        told += [
            each.error,
            each.said,
            *(part for edit in each.edits for part in (edit.argument, edit.before, edit.after)),
        ]
    return tuple(dict.fromkeys(visible(normalize("NFKC", each)) for each in told if each))


def personal_in(texts: Sequence[str], services: Services) -> tuple[str, ...]:
    """The types of personal data and secrets in texts, whatever MEMORY_REDACT says."""
    finds: tuple[Redactor, ...] = (open_redactor("all", services.settings.phone_regions), services.redactor)
    found: list[str] = []
    for text in texts:
        for redactor in finds:
            if (clean := redactor.text(text)) != text:
                found += (redactor.counts(clean) - redactor.counts(text)) or ["OTHER"]
    return tuple(sorted(set(found)))


def people_in(texts: Sequence[str], users: Collection[str], shared: Record) -> tuple[str, ...]:
    """Possible names of people: by their form, or because a user has that name."""
    found: list[str] = []
    for text in texts:
        found += (each.name for each in entities(text) if each.kind in _PEOPLE)
        found += sorted(named_people(text, {*users, *(each.partition("@")[0] for each in users)}))
    if shared.attribute == GUIDELINE:  # capitals in the arguments of a call are code
        own = (shared.source.agent_id, shared.subject)
        found = [each for each in found if each not in own and not each.isupper()]
    return tuple(dict.fromkeys(found))
