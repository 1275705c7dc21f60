"""The read path of a memory: the verbs that search and look up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from supervisor_memory.errors import InvalidContent, RecordNotFound, StageDenied
from supervisor_memory.flow import Recalling, Recipe, Turn, recall
from supervisor_memory.model.arguments import (
    LONGEST_READ,
    MessagesLike,
    Moment,
    as_families,
    as_layers,
    as_messages,
    as_moment,
    check_amount,
    check_scope,
    check_threshold,
    last_user_text,
)
from supervisor_memory.model.records import (
    Filter,
    Hits,
    Note,
    Record,
    Route,
    Scope,
    check_content,
    content_hash,
    is_id,
)
from supervisor_memory.model.versions import Version
from supervisor_memory.ports import NoStore, Ports, Services
from supervisor_memory.reading.topics import Topic, table_of_contents
from supervisor_memory.stages.pre_retrieval.route import route
from supervisor_memory.stores.sessions import place_of, place_of_one
from supervisor_memory.telemetry import of_many, of_search, spanned
from supervisor_memory.upkeep.edit import Curator, asked_for, in_order
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from supervisor_memory.reading.relations import Relations
    from supervisor_memory.reading.timeline import Chapter


def summary(texts: Sequence[str], goal: str, view: NoStore) -> str:
    """A summary for a goal; empty when there is nothing to summarise."""
    unique: dict[str, str] = {}
    for text in texts:
        unique.setdefault(content_hash(text), text)
    notes = "\n".join(f"- {text}" for text in unique.values())
    if not notes:
        return ""
    return view.complete(view.prompt("summary", goal=goal or "a prompt", notes=notes)) or notes


_SECONDS: Final = 60.0
"""All records of the user are read, so that it may take longer than a recall."""


def past(services: Services, user_id: str, when: float) -> Ports:
    """Ports over the user's records as they were at a moment, which is their `now`.

    Raises:
        BackendError, DeadlineExceeded: the store failed.
    """
    from supervisor_memory.stores.as_of import AsOf  # with it comes numpy

    present = Ports(services, seconds=_SECONDS, now=services.clock())
    view = present.deciding()
    embedder = view.embedder
    store = present.store(
        AsOf,
        services.backend,
        user_id,
        when,
        embed=view.embed,
        embedder=embedder.fingerprint if embedder else None,
    )
    return Ports(replace(services, backend=store), seconds=_SECONDS, now=when, faults=present.faults)


def search(
    turn: Turn, ports: Ports, recipe: Recipe, trail: Trail
) -> tuple[Recalling, Callable[[Scope], None]]:
    """The hits of a turn, and a function that logs them as shown to a reader."""
    found = recall(turn, ports, recipe)
    return found, trail.telling("search", found, ports=ports, is_sure=True)


_MOST_HITS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads through the stages of a recipe, or record by record, and notes in the access log who saw what."""

    services: Services
    recipe: Recipe
    curator: Curator
    trail: Trail
    quotes: Callable[[Scope], bool]
    """Whether notes in a scope may quote what was said."""

    @spanned("search_memory", of_search)
    def search(
        self,
        query: str,
        *,
        user_id: str,
        families: Sequence[str] | None = None,
        layers: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        task: str | None = None,
        explain: bool = False,
        as_of: Moment | None = None,
    ) -> Hits:
        """The records that bear on a question, best first, each with the parts of its score.

        A question that is empty, or spaces, asks for what is pinned (`metadata["pinned"]` is True) and then
        for what is newest, each by its last update; no threshold applies. Of a longer question the first
        8,000 characters are read, and the hits' `notes` say so.

        Args:
            families: None: all of the user's but session messages.
            layers: "abstract", "summary" and "history", what was said word for word: session messages too
                where no families are named. None: all, without session messages.
            where: Which records may be found at all, however many others are more like the question:
                `{"kind": …, "tags": […], "session": …, "agent": …, "since": …, "until": …, "metadata": {…}}`;
                see docs/searching.md.
            limit: None: MEMORY_TOP_K. At most 1,000,000.
            threshold: Least relevance in [0, 1]. None: MEMORY_MIN_SCORE; 0: the best `limit`,
                whatever they are.
            explain: Whether to tell what became of each candidate, in the hits' `considered`;
                `print(hits)` then shows a table.
            as_of: A moment to look back to, as seconds since 1970, a datetime, or text such as "2026-01-31"
                (the end of that day) or "2026-01-31T18:00+08:00": what was valid then, and nothing of what
                came later; see docs/reviewing.md. It reads all of the user's records.

        Raises:
            InvalidContent: an argument cannot be what it is for.
            BackendError, DeadlineExceeded: the store failed. A failing embedder does not raise: the hits
                are `degraded` and found by words alone.
            StageDenied: an operator of the recipe reached for what its stage may not.
        """
        if not isinstance(query, str):
            raise InvalidContent(f"query is {type(query).__name__}; pass text", type=type(query).__name__)
        asked = self._filter(where)
        turn = Turn(
            text=query,
            scope=self.services.scope(Scope(user_id, agent_id, session_id, None, task)),
            purpose="hits",
            families=as_families(families),
            where=asked if layers is None else replace(asked, layers=as_layers(layers)),
            limit=None if limit is None else check_amount(limit, what="limit", most=_MOST_HITS),
            threshold=check_threshold(threshold),
            explain=explain,
        )
        ports = self._ports()
        if (when := as_moment(as_of, what="as_of", end=True)) is not None:
            ports = past(self.services, turn.scope.user_id, when)
        recipe = self.recipe if query.strip() else self.recipe.browse or self.recipe
        try:
            found, tell = self.services.bridge.within(ports.left(), search, turn, ports, recipe, self.trail)
        except StageDenied as error:  # a host's own operator; the log says so as it does of a recall
            self.trail.degraded("search", turn.scope, type(error).__name__, ports=ports)
            raise
        tell(turn.scope)
        if found.hits.degraded:
            self.trail.degraded("search", turn.scope, ports.reasons, ports=ports)
        return found.hits

    def get(self, id: str, *, user_id: str | None = None, as_of: Moment | None = None) -> Record:
        """One record, in any status.

        Args:
            user_id: Given: the record must be this user's. None: the operator reads, and the log says so.
            as_of: Given: the version that was valid at that moment, as in `search`.

        Raises:
            RecordNotFound: there is no such record, it is another user's, or it was not valid then. The
                error names the nearest ids.
        """
        when = as_moment(as_of, what="as_of", end=True)
        if when is None:
            return self.curator.find(id, user_id, op="get")
        return self.curator.as_of(id, user_id, when)

    def get_all(
        self,
        *,
        user_id: str,
        limit: int = 100,
        after: str | None = None,
        families: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        as_of: Moment | None = None,
    ) -> list[Record]:
        """A user's active records, most recently updated first; session messages only by family.

        Args:
            after: The `cursor` of the last record of the page before.
            where: Only those records, as in `search`.
            as_of: Those that were valid at that moment, as in `search`.
        """
        scope = Scope(user_id)
        most = check_amount(limit, what="limit")
        asked = replace(
            self._filter(where),
            user_id=scope.user_id,
            families=as_families(families),
            behind=place_of_one(after),
        )
        curator = self.curator
        if (when := as_moment(as_of, what="as_of", end=True)) is not None:
            then = past(self.services, scope.user_id, when)
            curator = replace(curator, reading=lambda: then)
        found = list(islice(curator.every(asked), most))
        self.trail.accessed("list", found, scope)
        return found

    def history(self, id: str, *, user_id: str | None = None) -> list[Version]:
        """Every version of a record, oldest first, with its valid times, time of recording and decision.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
        """
        return self.curator.versions(id, user_id)

    def topics(self, *, user_id: str, task: str | None = None, max_tokens: int | None = None) -> list[Topic]:
        """The table of contents: what is remembered, `str(topic)` a line; see docs/disclosure.md.

        Args:
            max_tokens: What all lines may take together; those of pinned, important and new records come
                first. None: MEMORY_MAX_CONTEXT_TOKENS.

        Raises:
            BackendError, DeadlineExceeded: the store failed.
        """
        scope = self.services.scope(Scope(user_id, task=task))
        most = self.services.settings.max_context_tokens if max_tokens is None else max_tokens
        check_amount(most, what="max_tokens", least=0)
        where = Filter(user_id=scope.user_id, tasks=scope.tasks)
        records = {record.id: record for record in self.curator.every(where)}
        counter = self.services.count_tokens
        topics = table_of_contents(records.values(), most_tokens=most, count_tokens=counter)
        self.trail.accessed("topics", [records[id_] for each in topics for id_ in each.quoted], scope)
        return topics

    def messages(
        self, id: str, *, user_id: str | None = None, around: int = 2, within: float | None = None
    ) -> list[Record]:
        """The session message a record came from, with its neighbours, in order.

        Empty where what was said was not kept. For a message: itself, and those around it.

        Args:
            user_id: Given: the record must be this user's. None: the operator reads, and the log says so.
            around: How many messages before it, and how many after.
            within: Of these only what was said so many seconds before and after it, so that of a long session
                no more is read. None: however far they are apart.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
        """
        check_amount(around, what="around", least=0)
        record = self.curator.find(id, user_id, op="messages")
        session = self.curator.session_of(record, within=within)
        said = list(_said_around(record, session, around=around))
        self.trail.seen("messages", said, by_operator=user_id is None)
        return said

    def session(self, session_id: str, *, user_id: str) -> list[Record]:
        """All messages of a user's session, imported ones too, in order.

        Raises:
            RecordNotFound: nothing is kept of such a session, or it is another user's.
        """
        scope = Scope(user_id, session_id=session_id)
        said = in_order(self.curator.every(Filter(user_id=scope.user_id, session_id=session_id)))
        if not said:
            raise RecordNotFound(
                f"nothing is kept of session {session_id[:64]!r} of user {scope.user_id!r}", id=session_id
            )
        self.trail.accessed("session", said, scope)
        return said

    def timeline(
        self,
        *,
        user_id: str,
        since: Moment | None = None,
        until: Moment | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        with_said: bool = False,
        limit: int = 10,
        messages: int = 100,
        after: str | None = None,
    ) -> "Sequence[Chapter]":
        """What was said, learned, changed and decided between two moments, by session, newest first.

        Args:
            since, until: Of what was said; a day given as text counts whole. None: no bound.
            session_id, agent_id: Only this session; only those in which this agent spoke.
            with_said: Whether messages are told word for word, too.
            limit: Most sessions.
            messages: Most messages of a session that are told of, the newest. Where there are more,
                `chapter.earlier` is what to pass as `until`, with the `session_id`, to read on.
            after: The `session.cursor` of the last chapter of the page before.

        Raises:
            InvalidContent: an argument cannot be what it is for.
            BackendError, DeadlineExceeded: the store failed, or is out of reach.
        """
        from supervisor_memory.reading.timeline import timeline  # a turn needs none of it

        scope = Scope(user_id, agent_id, session_id)
        where = Filter(
            scope.user_id,
            session_id=scope.session_id,
            agent_id=scope.agent_id,
            since=as_moment(since, what="since", end=False),
            until=as_moment(until, what="until", end=True),
        )
        place, most = place_of(after), check_amount(limit, what="limit")
        of_each = check_amount(messages, what="messages", least=1)
        ports = Ports(self.services, seconds=_SECONDS, now=self.services.clock())
        told = timeline(where, ports, limit=most, messages=of_each, after=place, with_said=with_said)
        ids = [entry.id for chapter in told for entry in chapter.entries]
        seen = ports.store(self.services.backend.get, list(dict.fromkeys(ids)))
        self.trail.accessed("timeline", seen, Scope(scope.user_id), ports=ports)
        return told

    def relations(
        self,
        about: str,
        *,
        user_id: str,
        to: str | None = None,
        limit: int = 20,
        offset: int = 0,
        as_of: Moment | None = None,
    ) -> "Relations":
        """The neighbours of a thing or a record, their relations, and its lineage.

        It is read off the user's active records, the newest 20,000 of them; see docs/relations.md.

        Args:
            about: A name, as "fct_orders", or the id of a record: then what it names. Where a table and a
                metric have one name, "table:orders" or "metric:orders".
            to: A second one; then the shortest way there is told too.
            limit, offset: Of the neighbours; at most `limit` relations are told.
            as_of: A moment to look back to, as in `search`.

        Raises:
            RecordNotFound: there is no record of such an id, or it is another user's.
            InvalidContent: an argument cannot be what it is for.
            BackendError, DeadlineExceeded: the store failed.
        """
        from supervisor_memory.reading.relations import told_of  # a turn needs none of it

        scope = Scope(user_id)
        most, start = check_amount(limit, what="limit"), check_amount(offset, what="offset", least=0)
        named = (about, to)
        if wrong := next((each for each in named[: 1 + (to is not None)] if not isinstance(each, str)), None):
            raise InvalidContent(f"a name is {type(wrong).__name__}; pass text", type=type(wrong).__name__)
        curator = self.curator
        if (when := as_moment(as_of, what="as_of", end=True)) is not None:
            then = past(self.services, scope.user_id, when)
            curator = replace(curator, reading=lambda: then)
        told = told_of(curator, scope.user_id, about, to=to, limit=most, offset=start)
        self.trail.accessed("relations", told.records.values(), scope)
        return told

    def route(self, text: str, scope: Scope, *, policy: Literal["default"] = "default") -> Route:
        """Whether a text asks for memory or holds something to remember, with the names of the rules that say
        so."""
        if policy != "default":
            raise InvalidContent(f"there is no routing policy {policy!r}; use 'default'", policy=policy)
        if not isinstance(text, str):
            raise InvalidContent(f"text is {type(text).__name__}; pass a string", type=type(text).__name__)
        read = text[:LONGEST_READ]
        return route(read, agent_id=scope.agent_id, prefixes=self.services.settings.namespaces)

    @spanned("summarize_memory", of_many(lambda given, text: len(given["items"])))
    def summarize(self, items: Sequence[str], *, goal: str = "", user_id: str | None = None) -> str:
        """One text of several records (by id) or texts: by the model, or as a list without repeats.

        Raises:
            RecordNotFound: an id is not this user's.
        """
        if isinstance(items, str):
            raise InvalidContent("items is one text; pass a list of ids or texts")
        texts = [check_content(item) for item in items]
        told = [self.curator.text_of(t, user_id) if is_id(t) else t for t in texts]
        return summary(told, goal, self._ports().no_store())

    def preview(
        self, question: MessagesLike, scope: Scope, *, settings: Mapping[str, Any] | None = None
    ) -> Note:
        """The note a reader would get for a question now, and each candidate's fate.

        Nobody is given it: the log says that an operator looked.

        Args:
            question: What the user says, or what the reader would see, as `recall` takes it.
            scope: `agent_id` is the sub-agent that would read it; None: the supervisor.
            settings: Settings to try out, by name, as `{"max_context_tokens": 200}`; only those of ranking
                and of notes matter here.

        Raises:
            InvalidContent: an item of the question is no message.
            SettingsError: a setting is unknown or cannot have that value.
            BackendError, DeadlineExceeded: the store failed.
        """
        check_scope(scope)
        scope, ports = self.services.scope(scope), self._ports()
        if settings:
            services = replace(ports.services, settings=self.services.settings.tried(settings))
            ports = Ports(services, seconds=ports.left(), now=ports.now)
        seen = as_messages(question)
        asked = last_user_text(seen)
        turn = Turn(text=asked, scope=scope, messages=seen, said=self.quotes(scope), explain=True)
        found = recall(turn, ports, self.recipe)
        self.trail.accessed("preview", found.hits, scope, by_operator=True, ports=ports)
        return found.note

    def _filter(self, where: Mapping[str, Any] | None) -> Filter:
        return asked_for(where, self.services.redactor)

    def _ports(self) -> Ports:
        return self.services.ports(self.services.settings.search_timeout_ms)


def _said_around(record: Record, said: Sequence[Record], *, around: int) -> Sequence[Record]:
    """The message that a record was read from, with so many before and after; empty where it was not kept.

    Args:
        said: The messages of its session, in order. A message is its own.
    """
    known = [message.id for message in said]
    source_id = record.source.message_id
    answered = [each.id for each in said if source_id is not None and each.source.message_id == source_id]
    wanted = (record.id, record.ref_id, *answered)
    places = (known.index(each) for each in wanted if each in known)
    place = next(places, None)
    return () if place is None else said[max(0, place - around) : place + around + 1]
