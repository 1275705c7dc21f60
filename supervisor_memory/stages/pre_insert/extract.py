"""Turn what was said and done into candidates for memory, by rules. Content is quoted, never rephrased.

What the user stated comes from `statements`; an agent's conclusion, its files and its SQL from what it
returned. A model's proposals pass `sift` before they count.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from supervisor_memory.compare import reading
from supervisor_memory.compare.changes import change
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.model.arguments import WHOLE_NUMBERS
from supervisor_memory.model.records import (
    ARTIFACT,
    Candidate,
    Kind,
    Message,
    Record,
    Source,
    Thing,
    content_hash,
    things,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.stages.pre_insert.claim import MAX_CLAIM, Claim, Unusable, read_claim
from supervisor_memory.understand.lineage import tables_of
from supervisor_memory.understand.rejection import informing
from supervisor_memory.understand.sql import one_query, query_of
from supervisor_memory.understand.statements import (
    SMALL_TALK,
    Definition,
    Statement,
    believed,
    masked,
    normal,
    perhaps_stated,
    read_statements,
    without_address,
)
from supervisor_memory.understand.subject import About, about_preference, properties_of

MAX_CONCLUSION = MAX_CLAIM
MAX_ITEMS = 20
MOST_READ = 10 * MAX_ITEMS
"""Items of an answer that are looked at, sound or not."""
_MAX_SQL = 1_000
_MAX_PATH = 1_024
_MAX_NAME = 128
_MAX_DEPTH = 4
_LEAST_TERMS = 3


@dataclass(frozen=True, slots=True)
class Extracted:
    """The candidates of a text, and a code for each sentence or item that may not be remembered.

    `perhaps` are those of sentences that may state nothing, and count only of what is known.
    """

    candidates: tuple[Candidate, ...] = ()
    unkept: tuple[str, ...] = ()
    perhaps: tuple[Candidate, ...] = ()


STEPS = "steps"
"""The attribute of a record that holds the steps of a task; its subject is the task."""
EXTRACTED = "extracted"
"""The key in a record's metadata for its extraction: by whom, by which rule, from which place."""


def noted(
    candidate: Candidate,
    *,
    by: str,
    rule: str | None = None,
    at: tuple[int, int] | None = None,
    marks: Sequence[str] = (),
) -> Candidate:
    """The candidate with why it was remembered in its metadata, for whoever reviews it.

    Args:
        by: "rules", "learned", "model", or the name of an extractor.
        at: Where it begins and ends in the message of `source.message_id`, in characters.
        marks: The pieces of the sentence that weighed most with the learned reader.
    """
    told: dict[str, Any] = {"by": by, "confidence": round(candidate.confidence, 2)}
    if rule is not None:
        told["rule"] = rule
    if at is not None:
        told["at"] = list(at)
    if marks:
        told["marks"] = list(marks)
    return replace(candidate, metadata={**candidate.metadata, EXTRACTED: told})


# --- the user ------------------------------------------------------------------------------------------


def read_user(
    message: Message,
    *,
    source: Source = Source(),  # noqa: B008 - frozen
    again: Callable[[Sequence[Statement]], Sequence[Statement]] = lambda statements: statements,
) -> Extracted:
    """One candidate for each sentence in which the user states something lasting, or takes it back.

    Args:
        source: Where the turn came from; the message's id and name are added.
        again: Judges the judged sentences of a message again, knowing more.
    """
    if message.role != "user":
        return Extracted()
    said = replace(source, source_class="user", message_id=message.id, speaker=message.name)
    read = read_statements(message.content)
    read = replace(read, all=tuple(map(believed, again(read.all))))
    kept = read.worth_keeping
    perhaps = {}
    if not read.refusal:
        unsure = {each: perhaps_stated(each, is_news=_is_news(each)) for each in read.all}
        perhaps = {each: found for each, found in unsure.items() if found is not None}
    return Extracted(
        tuple(_of_statement(each, said) for each in kept),
        tuple(
            _why_not(each, read.refusal)
            for each in read.all
            if (each.kind is None or not kept) and each not in perhaps
        ),
        tuple(_of_statement(each, said) for each in perhaps.values()),
    )


def _is_news(statement: Statement) -> bool:
    """Whether an unkept sentence may be news: it gives an attribute a value, ends something, or reads like a
    change.

    What reads like a task is meant for this once, unless it speaks of the user's own things or of later.
    """
    if statement.kind is not None or statement.reason not in ("none", "task"):
        return False
    told = reading.read(statement.text)
    people = told.people
    is_lasting = statement.reason != "task" or people.is_i or people.is_we or bool(people.known)
    is_lasting = is_lasting or _STANDING.search(normal(statement.text)) is not None
    is_told = bool(told.states or told.dropped) or told.corrects or told.announces
    return is_lasting and (is_told or change(statement.text) > 0)


def _why_not(statement: Statement, refusal: str) -> str:
    if refusal and statement.kind is not None:
        return refusal
    if statement.reason in ("none", "task"):
        is_small_talk = SMALL_TALK.fullmatch(normal(statement.text[:_MAX_NAME]))
        return "small-talk" if is_small_talk else "no-statement"
    return statement.reason


_LEXICON, _WISHES, _SENTENCES = map(lexicon, ("answers", "wishes", "sentences"))
_STANDING = _WISHES.pattern("preferences.standing-instruction")
_CONFIDENCE = {"decision": 0.75, "correction": 0.75, "house-rule": 0.75, "personal-fact": 0.85, "habit": 0.8}
"""How sure a rule is; the others are made of words that announce a wish or a definition."""
_USUAL_CONFIDENCE, _OF_AN_AGENT = 0.9, 0.7


def _of_statement(statement: Statement, source: Source) -> Candidate:
    kind = statement.kind or "domain-facts"
    if statement.retracts:
        found = _taken_back(statement, statement.retracts, kind, source)
    else:
        content = content_of(statement)
        about = _about_of(statement.text, kind, statement.definition)
        found = _candidate(content, kind, source, about=about, evidence=statement.text)
    at = (statement.start, statement.start + len(statement.text))
    if statement.is_learned and (learned := statement.learned):
        found = replace(found, confidence=learned.chance)
        return noted(found, by="learned", rule=statement.reason, at=at, marks=learned.marks)
    found = replace(found, confidence=_CONFIDENCE.get(statement.reason, _USUAL_CONFIDENCE))
    return noted(found, by="rules", rule=statement.reason, at=at)


def _taken_back(statement: Statement, what: str, kind: Kind, source: Source) -> Candidate:
    told = describe(what)
    about = About(told.subject, told.attribute, told.value) if told.subject else about_preference(what)
    if _LEXICON["whole"].match(what):
        kind = told.kind  # where a write of these words would have put them
    found = _candidate(what, kind, source, about=about, evidence=statement.text)
    return replace(found, event="DELETE")


def _trimmed(text: str) -> str:
    """The sentence without greeting, politeness and announcement at its ends."""
    text = _SENTENCES["tag"].sub("", text.strip())
    if polite := _SENTENCES["polite"].match(text):
        rest = polite["rest"] or polite["rest_zh"] or ""
        text = rest if _SENTENCES["polite_wish"].search(rest) or _STANDING.search(rest) else text
    return without_address(text).strip(" ,，、:：").strip()


def _about_of(text: str, kind: Kind, definition: Definition | None) -> About:
    if definition is None:
        return about_preference(text) if kind == "user-profile" else About()
    if definition.relation == "definition":
        return About(definition.term, "definition")
    if definition.relation == "alias":
        return About(definition.term, None, definition.value.casefold()[:_MAX_NAME])
    value = "yes" if definition.relation == "includes" else "no"
    return About(definition.term, f"includes-{_object(definition.value)}", value)


_MAX_OBJECT = 80


def _object(value: str) -> str:
    """What is included or excluded, short enough to compare."""
    first = re.split(r"[,;。]", normal(value).casefold())[0]
    return _LEXICON["object_edges"].sub("", first).replace(" ", "-")[:_MAX_OBJECT] or "it"


def _candidate(
    content: str,
    kind: Kind,
    source: Source,
    *,
    about: About,
    evidence: str,
    metadata: Mapping[str, Any] | None = None,
) -> Candidate:
    data = dict(metadata or {})
    if about.value is not None:
        data.setdefault("value", about.value)
    asked = data.get("strategy")
    return Candidate(
        content=content,
        kind=kind,
        source=source,
        subject=about.subject,
        attribute=about.attribute,
        value=about.value,
        tags=properties_of(evidence) if kind == "user-profile" else (),
        metadata=data,
        strategy=asked if isinstance(asked, str) else None,
        evidence=evidence,
    )


# --- an explicit write ---------------------------------------------------------------------------------


def content_of(statement: Statement) -> str:
    """The content of a sentence: its words without an introduction."""
    return _trimmed(statement.text) or statement.text


def taken_back(content: str, *, source: Source = Source()) -> Candidate | None:  # noqa: B008 - frozen
    """The deleting candidate of a text with exactly one sentence, a retraction; else None."""
    told = read_statements(content).all
    return _of_statement(told[0], source) if len(told) == 1 and told[0].retracts else None


def describe(
    content: str,
    kind: Kind | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    source: Source = Source(),  # noqa: B008 - frozen
) -> Candidate:
    """Describe an explicit write: its kind unless given, its subject, attribute and value.

    A preference is `user-profile`, a path or SQL `tool-effects`, anything else `domain-facts`. A text of an
    agent or a tool is `user-profile` where one of its sentences would be, whatever stands around it. Unlike
    `read_user` it refuses nothing: who writes explicitly means it.
    """
    told = read_statements(content).all
    stated = next((s for s in told if s.kind is not None), None)
    definition = stated.definition if stated else None
    if kind is None:
        is_of_the_user = source.source_class in ("agent", "tool") and any(map(_is_of_the_user, told))
        kind = "user-profile" if is_of_the_user else _kind_of(content, stated)
    effects = _effects([content] if query_of(content) else [], content, source)
    if kind == "tool-effects" and (effect := next(effects, None)):
        about = About(effect.subject, effect.attribute)
    else:
        about = _about_of(content, kind, definition)
    return _candidate(content, kind, source, about=about, evidence=content, metadata=metadata)


def _kind_of(content: str, stated: Statement | None) -> Kind:
    if stated and stated.kind:
        return stated.kind
    if query_of(content) or (_PATH.search(content) and len(content) <= _MAX_PATH):
        return "tool-effects"
    return "user-profile" if _names_the_user(content) else "domain-facts"


def _is_of_the_user(said: Statement) -> bool:
    """Whether a sentence alone would be `user-profile`."""
    return said.kind == "user-profile" or (said.kind is None and _names_the_user(said.text))


def _names_the_user(text: str) -> bool:
    """Whether a text begins with the user, or with something of the user's."""
    return _WISHES["about_the_user"].search(masked(normal(text[:_MAX_PATH]))) is not None


# --- an agent ------------------------------------------------------------------------------------------


def read_agent(
    *,
    agent_id: str,
    final_answer: str | None = None,
    conclusion: object | None = None,
    side_effects: Sequence[Mapping[str, Any] | str] = (),
    source: Source = Source(),  # noqa: B008 - frozen
) -> Extracted:
    """An agent's conclusion (or else its final answer) as task-traces, its files and SQL as tool-effects.

    Args:
        conclusion: A text, or an object or mapping that has one as `conclusion`. Its question and
            evidence are kept in the metadata.
        side_effects: Mappings with `path` or `sql` (and `type`, `rows`, `digest`, `rests_on`), or plain paths
            and SQL.
    """
    agent = replace(source, source_class="agent", agent_id=agent_id)
    tool = replace(source, source_class="tool", agent_id=agent_id)
    concluded, why_not = _concluded(conclusion, final_answer, agent)
    effects = [*_effects(side_effects, final_answer, tool)]
    given = things(_field(conclusion, "rests_on") or _field(_field(conclusion, "metadata"), "rests_on"))
    found = [_resting_on(each, given or _evidence(each.metadata, effects)) for each in concluded]
    found += [_queried(each, effects) if "path" in each.metadata else each for each in effects]
    kept = tuple(replace(each, confidence=_OF_AN_AGENT) for each in found[: MAX_ITEMS + 1])
    rules = {"task-traces": "conclusion", "tool-effects": "side-effect"}
    return Extracted(tuple(noted(each, by="rules", rule=rules[each.kind]) for each in kept), why_not)


_EVIDENCE_FIELDS = ("question", "evidence", "figures", "sql", "csv_path", "chart_path")


def _concluded(
    conclusion: object | None, final_answer: str | None, source: Source
) -> tuple[list[Candidate], tuple[str, ...]]:
    """The conclusion, or why there is none."""
    text = conclusion if isinstance(conclusion, str) else _field(conclusion, "conclusion")
    if not isinstance(text, str) or not text.strip():
        text = final_answer
    if not isinstance(text, str) or not text.strip():
        return [], ()
    text, why_not = _telling(text.strip())
    if why_not is not None:
        return [], (why_not,)
    metadata = {
        name: value
        for name in _EVIDENCE_FIELDS
        if (value := _plain(_field(conclusion, name))) not in (None, "", [], {})
    }
    asked = _plain(_field(conclusion, "metadata"))
    if isinstance(asked, dict) and isinstance(asked.get("strategy"), str):
        metadata["strategy"] = asked["strategy"]
    content = _cut(text)
    if content != text:
        metadata |= {"cut": True, "full_length": len(text)}
    found = _candidate(content, "task-traces", source, about=About(), evidence=content, metadata=metadata)
    return [found], ()


_DATA = re.compile(r"\.(?:csv|tsv|xlsx?|parquet|feather|jsonl?|db|xml)\Z", re.IGNORECASE)
"""Files that a conclusion is drawn from; pictures and reports are drawn from it."""


def _evidence(metadata: Mapping[str, Any], effects: Sequence[Candidate]) -> Iterator[Thing]:
    """The files and tables that a conclusion names as its evidence, else those that its agent brought."""
    told = [metadata.get(name) for name in ("csv_path", "sql")]
    told = told if any(told) else [each.metadata.get(name) for each in effects for name in ("path", "sql")]
    for text in (each for each in told if isinstance(each, str)):
        yield from [("file", text)] if _DATA.search(text) else _read_by(text)


def _read_by(sql: str) -> Sequence[Thing]:
    return [("table", name) for name in sorted(tables_of(sql).read)] if query_of(sql) else []


def _resting_on(candidate: Candidate, new: Iterable[Thing]) -> Candidate:
    """The candidate, resting on further things."""
    every = dict.fromkeys((*things(candidate.metadata.get("rests_on")), *new))
    told = [list(each) for each in islice(every, MAX_ITEMS)]
    return replace(candidate, metadata={**candidate.metadata, "rests_on": told}) if told else candidate


def _query_for(candidate: Candidate, every: Sequence[Candidate]) -> str:
    """The SQL of a candidate, else the only one beside it."""
    queries = {each.metadata["sql"] for each in every if isinstance(each.metadata.get("sql"), str)}
    return str(candidate.metadata.get("sql") or (min(queries) if len(queries) == 1 else ""))


def resting_on_metrics(
    found: Sequence[Candidate], asked: str, defined: Sequence[Record]
) -> Iterator[Candidate]:
    """Let the results of agents rest on the metrics named in them or in the question. If a definition and the
    SQL both have figures, they must share one.

    Args:
        defined: The definitions that are known.
    """
    for each in found:
        path = each.metadata.get("path")
        if each.source.source_class == "user" or (path and not _DATA.search(str(path))):
            yield each
            continue
        figures = _figures(_query_for(each, found))
        words = set(terms(f"{each.content} {each.metadata.get('question') or asked}"))
        named = (d for d in defined if d.subject and words.issuperset(terms(d.subject)))
        used = (d for d in named if not figures or not (own := _figures(d.content)) or own & figures)
        yield _resting_on(each, [("metric", str(d.subject)) for d in used])


def _queried(file: Candidate, every: Sequence[Candidate]) -> Candidate:
    """A file with the query behind it, resting on the tables in it."""
    query = _query_for(file, every)
    is_data = bool(query) and "sql" not in file.metadata and _DATA.search(str(file.metadata["path"]))
    return _resting_on(
        replace(file, metadata={**file.metadata, "query": query}) if is_data else file, _read_by(query)
    )


def _figures(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text))


def _telling(text: str) -> tuple[str, str | None]:
    """The informative part of an answer, or the reason why there is none."""
    head = text[:MAX_CONCLUSION]
    if _LEXICON["empty_answer"].search(head):
        return "", "apology"
    if head.rstrip().endswith(("?", "？")):
        return "", "question"
    told, why_not = informing(text)
    if why_not is None and len(terms(told[:MAX_CONCLUSION])) < _LEAST_TERMS:
        why_not = "fragment"
    return told, why_not


def _cut(text: str) -> str:
    """At most `MAX_CONCLUSION` characters, ending with a sentence where there is one."""
    if len(text) <= MAX_CONCLUSION:
        return text
    head = text[:MAX_CONCLUSION]
    end = max(head.rfind(mark) for mark in ("。", ". ", "！", "！", "? ", "\n"))
    return (head[: end + 1] if end > MAX_CONCLUSION // 2 else head).rstrip()


def _field(thing: object | None, name: str) -> object | None:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _plain(value: object, depth: int = 0) -> Any:
    """The value when JSON can hold it, shortened where long; None otherwise."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in WHOLE_NUMBERS else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value[:MAX_CONCLUSION]
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        pairs = ((k, _plain(v, depth + 1)) for k, v in list(value.items())[:MAX_ITEMS] if isinstance(k, str))
        return {k[:_MAX_NAME]: v for k, v in pairs if v is not None}
    if isinstance(value, (list, tuple)):
        return [plain for item in value[:MAX_ITEMS] if (plain := _plain(item, depth + 1)) is not None]
    return None


# --- files and SQL ---------------------------------------------------------------------------------------

_LOOKS_AT_SCHEMA = re.compile(
    r"^\s*(?:pragma|explain|describe|desc|show|\.schema|\.tables)\b|\bsqlite_(?:master|schema)\b|"
    r"\binformation_schema\b|\bpg_catalog\b|^\s*select\b(?!.*\bfrom\b)",
    re.IGNORECASE | re.DOTALL,
)
_PATH = re.compile(
    r"(?<![\w./\\~:-])(?:[A-Za-z]:[\\/]|~/|\.{1,2}/|/)?[\w-][\w./\\-]{0,200}?"
    r"\.(?:csv|tsv|xlsx?|parquet|feather|jsonl?|md|html?|pdf|png|jpe?g|svg|sql|ipynb|txt|docx?|pptx?|db|xml|"
    r"zip|py)(?![A-Za-z0-9_.]?[A-Za-z0-9_])",
    re.ASCII,
)
_FENCED_SQL = re.compile(r"```sql\s+(.{1,4000}?)```", re.IGNORECASE | re.DOTALL)
_URL = re.compile(r"https?://\S{1,500}")


def _effects(
    side_effects: Sequence[Mapping[str, Any] | str], answer: str | None, source: Source
) -> Iterator[Candidate]:
    """Each file and each statement once; those that are only mentioned in the answer come last."""
    seen: set[str | None] = set()
    done = (_writing(each) for effect in side_effects for each in _of_effect(effect, source))
    named = (each for effect in _mentioned(answer) for each in _of_effect(effect, source))
    for candidate in chain(done, named):
        if candidate.subject not in seen:
            seen.add(candidate.subject)
            yield candidate


def _writing(effect: Candidate) -> Candidate:
    """A statement that was run, with the tables that it writes."""
    is_sql = effect.metadata.get("type") == "sql" and "path" not in effect.metadata
    written = sorted(tables_of(effect.metadata["sql"]).written) if is_sql else []
    return replace(effect, metadata={**effect.metadata, "writes": written}) if written else effect


def _of_effect(effect: object, source: Source) -> Iterator[Candidate]:
    if isinstance(effect, str):
        sql = query_of(effect)
        effect = {"path": effect} if sql is None else {"sql": sql}
    if not isinstance(effect, Mapping) or effect.get("error") or effect.get("ok") is False:
        return
    path, sql = effect.get("path"), effect.get("sql")
    if isinstance(path, str) and _is_path(path):
        yield _of_file(path.strip(), effect, source)
    if isinstance(sql, str) and sql.strip() and not _LOOKS_AT_SCHEMA.search(sql[:_MAX_SQL]):
        yield _of_sql(sql, source)


def _is_path(text: str) -> bool:
    text = text.strip()
    plain = 0 < len(text) <= _MAX_PATH and text.isprintable()
    return plain and ("/" in text or "\\" in text or _PATH.fullmatch(text) is not None) and "://" not in text


def _of_file(path: str, effect: Mapping[str, Any], source: Source) -> Candidate:
    rows = next((n for name in ("rows", "row_count") if type(n := effect.get(name)) is int), None)
    kind = effect.get("type")
    ending = path.rsplit(".", 1)[-1].casefold() if "." in path.rsplit("/", 1)[-1] else ""
    what = kind if isinstance(kind, str) and 0 < len(kind) <= _MAX_NAME and kind.isprintable() else ending
    content = f"{what} file: {path}".strip() + (f" ({rows} rows)" if rows is not None else "")
    metadata = {"path": path, "type": what, "rows": rows, "sql": _plain(effect.get("sql"))}
    metadata["digest"] = _plain(effect.get("digest"))
    return _resting_on(_of_artifact(content, path, metadata, source), things(effect.get("rests_on")))


def _of_sql(sql: str, source: Source) -> Candidate:
    line = " ".join(sql.split()).rstrip("; ")
    key = hashlib.sha256(one_query(sql).encode(errors="replace")).hexdigest()[:16]
    shown = line if len(line) <= _MAX_SQL else line[:_MAX_SQL] + " …"
    metadata = {"sql": sql.strip()[: 4 * _MAX_SQL], "type": "sql"}
    return _of_artifact(f"SQL: {shown}", f"sql:{key}", metadata, source)


def _of_artifact(content: str, subject: str, metadata: Mapping[str, Any], source: Source) -> Candidate:
    about = About(subject, ARTIFACT)
    kept = {name: value for name, value in metadata.items() if value not in (None, "")}
    return _candidate(content, "tool-effects", source, about=about, evidence=content, metadata=kept)


def _mentioned(answer: str | None) -> Iterator[str]:
    """Files and SQL that an answer names in its text."""
    if not isinstance(answer, str):
        return
    text = answer[: 32 * MAX_CONCLUSION]
    yield from (match[1] for match in _FENCED_SQL.finditer(text) if query_of(match[1]))
    text = _URL.sub(" ", _FENCED_SQL.sub(" ", text))
    yield from (match[0] for match in _PATH.finditer(text))


# --- a model ---------------------------------------------------------------------------------------------


def sift(
    reply: object,
    *,
    source: Source = Source("agent"),  # noqa: B008 - frozen
    check: "Callable[[Mapping[Any, Any]], Candidate | None] | None" = None,
) -> Extracted:
    """Check a model's answer like untrusted input. Raises only errors of the store.

    Args:
        reply: Parsed JSON or a pydantic object: a list of {content, kind, subject?, attribute?, value?,
            confidence?}, alone or under one key.
        check: Makes the candidate of an item, or raises `Unusable`; None of it: nothing was asked for.
    """
    kept: dict[tuple[str | None, str], Candidate] = {}
    codes: list[str] = []
    for number, item in enumerate(_items(reply), 1):
        if len(kept) == MAX_ITEMS or number > MOST_READ:
            codes.append(f"over-{MAX_ITEMS}-items")
            break
        try:
            if (given := _mapping(item)) is None:
                raise Unusable("malformed")
            found = _checked(given, source) if check is None else check(given)
        except Unusable as error:
            codes.append(str(error))
        else:
            if found and kept.setdefault((found.target, content_hash(found.content)), found) is not found:
                codes.append("duplicate")
    return Extracted(tuple(kept.values()), tuple(codes))


def _items(reply: object) -> Iterable[object]:
    reply = _mapping(reply) or reply
    if isinstance(reply, Mapping):
        lists = [value for value in reply.values() if isinstance(value, (list, tuple))]
        reply = lists[0] if lists else ([reply] if "content" in reply else [])
    return reply if isinstance(reply, (list, tuple)) else []


def _mapping(item: object) -> Mapping[Any, Any] | None:
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    try:
        data = dump() if callable(dump) else None
    except Exception:  # noqa: BLE001  # code of strangers; the item counts as malformed
        return None
    return data if isinstance(data, Mapping) else None


def _checked(item: Mapping[Any, Any], source: Source) -> Candidate:
    """The candidate of an item, or the error `Unusable`."""
    claim = read_claim(item, Claim)
    refuse_instructions(claim.content)
    told = describe(claim.content, claim.kind, source=source)
    named: dict[str, Any] = claim.named
    return replace(told, **named, confidence=claim.confidence)


def refuse_instructions(content: str) -> None:
    """Raise `Unusable` where a statement gives orders to an assistant."""
    if _SENTENCES["instruction"].search(masked(normal(content))):
        raise Unusable("instruction-like")
