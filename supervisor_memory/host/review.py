"""A node that pauses the graph while proposals wait for review, and resumes with a person's decisions.

Like every node it runs again from its top when it is resumed: the proposals are read anew, and those decided
meanwhile, at the desk or by an earlier try, are left alone. A decision names the id of its proposal, so that
nobody approves a proposal they were not shown.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.types import interrupt

from supervisor_memory.core import Memory
from supervisor_memory.errors import AlreadyReviewed, IdentityError, SupervisorMemoryError
from supervisor_memory.host.run.identity import Resolver, scope_of
from supervisor_memory.ports import guarded
from supervisor_memory.review.proposal import Proposal

ASK: Final = "memory-review"
"""The value of `"ask"` in the interrupt, by which a client knows this kind of question."""
_log = logging.getLogger("supervisor_memory")


def review_node(
    memory: Memory,
    *,
    reviewer: str | Callable[[RunnableConfig], str] = "operator",
    identity: Resolver | None = None,
    limit: int = 20,
) -> Runnable[Any, dict[str, Any]]:
    """A node for a graph with a checkpointer; put it where a person can be asked, as after the supervisor.

    It does nothing if no proposal of the run's user waits. Otherwise the graph pauses with
    `{"ask": "memory-review", "proposals": […]}` and is resumed with `Command(resume={id: decision})`, where a
    decision is "approve", "reject", or `{"action": "edit", "content": …}`. Proposals without a decision go on
    waiting. A memory that does not work never stops the graph here.

    Args:
        reviewer: The reviewer's login for the audit log, or a function that reads it from the run's config.
        identity: As in `attach`.
        limit: The most proposals to ask about at once.
    """

    def review(state: Any, config: RunnableConfig) -> dict[str, Any]:
        user_id = _user_of(memory, state, config, identity)
        if user_id is None:
            return {}
        waiting: Sequence[Proposal] = guarded(
            lambda: memory.review.pending(user_id=user_id, limit=limit), otherwise=lambda error: []
        )
        if waiting:
            answers = interrupt(question(waiting))
            who = reviewer if isinstance(reviewer, str) else reviewer(config)
            decide(memory, answers, user_id=user_id, reviewer=who)
        return {}

    return RunnableLambda(review, name="memory review")


def question(waiting: Sequence[Proposal]) -> dict[str, Any]:
    """The value of the interrupt: the waiting proposals, as plain JSON."""
    return {
        "ask": ASK,
        "proposals": [
            {
                "id": each.id,
                "why": list(each.why),
                "proposed": each.record.content,
                "said_by": each.said_by,
                "evidence": each.evidence,
                "known": each.existing.content if each.existing else None,
                "kept": each.text,
                "decision": each.decision,
            }
            for each in waiting
        ],
    }


def decide(memory: Memory, answers: object, *, user_id: str, reviewer: str) -> dict[str, str]:
    """Carry out a person's decisions; returns the outcome of each by its id.

    A decision that cannot be carried out leaves its proposal waiting, and the log says why. Raising would be
    worse: the node would be given the same answer again for ever.
    """
    if not isinstance(answers, Mapping):
        _log.warning("a memory review was answered with %s, not {id: decision}", type(answers).__name__)
        return {}
    return {
        str(id_): guarded(
            lambda id_=str(id_), answer=answer: _decide_one(  # type: ignore[misc]  # bound now, not later
                memory, id_, answer, user_id=user_id, reviewer=reviewer
            ),
            otherwise=lambda error: type(error).__name__,
        )
        for id_, answer in answers.items()
    }


def _decide_one(memory: Memory, id: str, answer: object, *, user_id: str, reviewer: str) -> str:
    asked = answer if isinstance(answer, Mapping) else {"action": answer}
    desk = memory.review
    try:
        match asked.get("action"):
            case "approve":
                return desk.approve(id, reviewer=reviewer, user_id=user_id).status
            case "edit":
                text = str(asked.get("content") or "")
                return desk.edit(id, text, reviewer=reviewer, user_id=user_id).status
            case "reject":
                reason = str(asked.get("reason", ""))
                return desk.reject(id, reviewer=reviewer, reason=reason, user_id=user_id).reason
            case _:
                _log.warning("record %s waits on: its answer is none of approve, edit, reject", id)
                return "waits"
    except AlreadyReviewed:  # by an earlier try of this node, or at the desk
        return "reviewed-before"
    except SupervisorMemoryError as error:
        _log.warning("record %s could not be reviewed: %s", id, type(error).__name__)
        return type(error).__name__


def _user_of(memory: Memory, state: Any, config: RunnableConfig, identity: Resolver | None) -> str | None:
    """The run's user; None if nobody can be identified, since memory is then off."""
    key = memory.backend.audit.log_id.encode()
    try:
        return scope_of(state, config, agent_id=None, resolver=identity, key=key).user_id
    except IdentityError as error:
        _log.warning("nothing is reviewed: %s", error)
        return None
