"""MemGPT: core memory in every prompt, searchable messages, and an archive in pages of five.

Paper: Packer et al., "MemGPT: Towards LLMs as Operating Systems", 2023.
Code: letta-ai/letta@0712141af, memgpt/agent.py, memory.py, constants.py and functions/function_sets/base.py.
Follows: the code: a section of core memory has 2,000 characters. The archive is searched by meaning, in pages
of five. When a conversation exceeds the window, its oldest messages, up to .75 of the tokens and never the
last three, become one summary, which is summed up again with the next.
Differs: core memory is the profile and the pinned records; the persona is the host's prompt. Records over the
limit of core memory are found by search; the code refuses to write them. The host shows the conversation
itself; `memory.optimize` sums it up and leaves it as it is. A text is kept whole, not in chunks of 300
tokens. The tools of the model are in `memgpt_agent`.
Without a model: a summary has the first sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Chore, Due, Reading, Recalling, Recipe
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Hit, Record, Wanted
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.compress import leading
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.retention import everything
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stores.protocol import Change

OVERFLOW: Final = "overflow"
"""The tag of a conversation's summary."""
_LONGEST: Final = 30_000  # characters of a conversation that a model is shown
_TOKENS: Final = 500  # of a summary that no model words


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants. Numbers of tokens are the memory's own count."""

    core: int = constant(2_000, "constants.py: CORE_MEMORY_HUMAN_CHAR_LIMIT", least=0, most=1_000_000)
    page: int = constant(5, "constants.py: RETRIEVAL_QUERY_DEFAULT_PAGE_SIZE", least=1, most=1000)
    window: int = constant(8_192, "constants.py: LLM_MAX_TOKENS, default", least=100, most=10_000_000)
    share: float = constant(0.75, "constants.py: MESSAGE_SUMMARY_TRUNC_TOKEN_FRAC", least=0, most=1)
    keep: int = constant(3, "constants.py: MESSAGE_SUMMARY_TRUNC_KEEP_N_LAST", least=1, most=1000)


def overflowing(tokens: Sequence[int], are_users: Sequence[bool], *, share: float, keep: int) -> int:
    """The number of oldest messages to sum up; the messages that are left do not begin with the user's.
    `tokens` and `are_users` have a value for each message; 0: too few to gain anything.
    """
    most, total, count = int(sum(tokens) * share), 0, 0
    for place, each in enumerate(tokens[: len(tokens) - keep]):
        count, total = place, total + each
        if total > most:
            break
    count += count < len(are_users) and are_users[count]
    return count if count > 1 else 0


def sum_up(c: Constants) -> Chore:
    """A chore that sums up each conversation that is over the window."""

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        there = [*everything(user_id, view)]
        sums = {(r.task, r.metadata.get("session")): r for r in there if OVERFLOW in r.tags}
        said: dict[tuple[str | None, str | None], list[Record]] = {}
        for each in sorted(there, key=lambda record: (record.created_at, record.id)):
            if each.family == SESSION_FAMILY and each.layer == "history":
                said.setdefault((each.task, each.source.session_id), []).append(each)
        due = []
        for of, messages in said.items():
            before = sums.get(of)
            held = set(before.made_from) if before else set[str]()
            left = [each for each in messages if each.id not in held]
            tokens = [view.count_tokens(each.content) for each in left]
            if sum(tokens) <= c.window:
                continue
            users = [each.source.source_class == "user" for each in left]
            if count := overflowing(tokens, users, share=c.share, keep=c.keep):
                after = _summed(left[:count], [each for each in messages if each.id in held], before, view)
                expects = before.version if before else None
                due.append(Due(Change(after, expects=expects), f"{sum(tokens)} tokens, over {c.window}"))
        return due

    return Chore("sum_up", plan)


def _summed(new: Sequence[Record], old: Sequence[Record], before: Record | None, view: ReadStore) -> Record:
    """One summary of messages and of the summary before them."""
    lines = [before.content] if before else []
    lines += [f"{each.source.speaker or each.source.source_class}: {each.content}" for each in new]
    text = "\n".join(lines)[-_LONGEST:]
    asked = view.prompt("summary", goal="the model that goes on with this conversation", notes=text)
    told = (view.complete(asked) or "").strip() if view.has_model else ""
    firsts = " ".join(leading(line, most_tokens=1, count_tokens=view.count_tokens) for line in lines)
    words = told or leading(firsts, most_tokens=_TOKENS, count_tokens=view.count_tokens)
    session = new[-1].source.session_id
    made = made_from([*old, *new], words, tag=OVERFLOW, now=view.now, session_id=session, session=session)
    if before is None:
        return made
    return replace(before, content=words, metadata=made.metadata, updated_at=view.now)


def add_summary(plan: Recalling, view: ReadStore) -> Recalling:
    """Add the summary of the conversation that a note is for."""
    scope = plan.turn.scope
    if plan.query is None or plan.turn.purpose == "hits" or scope.session_id is None:
        return plan
    where = Filter(scope.user_id, tasks=scope.tasks, tags=(OVERFLOW,))
    own = replace(where, metadata=(Wanted.of("session", scope.session_id),))
    added = [Hit(record, found=OVERFLOW) for record in view.list(own, limit=1)]
    others = (hit for hit in plan.hits if OVERFLOW not in hit.record.tags)
    return replace(plan, hits=replace(plan.hits, items=(*others, *added)))


def within_core(characters: int) -> Reading:
    """An operator that bounds the standing records of a note by characters."""

    def kept(plan: Recalling, view: ReadStore) -> Recalling:
        left, fits = characters, set[str]()
        for hit in plan.hits:
            if "standing" in hit.parts and (left := left - len(hit.record.content)) >= 0:
                fits.add(hit.record.id)
        core = (hit for hit in plan.hits if "standing" not in hit.parts or hit.record.id in fits)
        return plan.keeping(core, others="over-budget")

    return kept


def memgpt(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, weigh("memgpt", by_meaning), within_core(c.core), first(c.page)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        retrieval=(*PLAIN.retrieval, add_summary),
        upkeep=(sum_up(c),),
    )


PUBLISHED: Final = Published(
    "memgpt",
    "core memory in every note, an archive in pages, a summary of old messages",
    __doc__ or "",
    memgpt,
    Constants,
)
