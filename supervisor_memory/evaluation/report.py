"""The report of a replay: gain, harm, tokens, cost and latency with intervals, and the worst cases."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from supervisor_memory.evaluation.intervals import Interval, exact_gain, resampled, share
from supervisor_memory.evaluation.replay import BARE, Answered, Prices, Replayed, Replays

_LONGEST: Final = 400
_AMOUNTS: Final = ("tokens_in", "tokens_out", "calls")


@dataclass(frozen=True, slots=True)
class Compared:
    """One arm beside the bare graph, over the turns that both answered and a judge could judge.

    `gains`: only memory's answer is right; `harms`: only the bare graph's. `unrelated` are those of `pairs`
    on which nothing remembered bears. `changed`: answers that are worded otherwise, judged or not.
    `apart`: turns that are in no figure, by why. Amounts are of a turn, memory's less the bare graph's.
    """

    arm: str
    pairs: int
    bare_right: int
    right: int
    gains: int
    harms: int
    gain: Interval | None
    unrelated: int
    unrelated_harms: int
    unrelated_harm: Interval | None
    answered: int
    changed: int
    apart: Mapping[str, int]
    tokens: Interval | None
    dollars: Interval | None
    seconds: Interval | None
    agents: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Agent → "bare" and the arm → amounts, dollars, and seconds of model calls, in all."""

    @property
    def verdict(self) -> str:
        """In words: "no difference" where the interval holds 0."""
        if self.gain is None:
            return "nothing was judged"
        if self.gain.holds_zero:
            return "no difference"
        return "memory helps" if self.gain.value > 0 else "memory harms"

    def to_dict(self) -> dict[str, Any]:
        """Plain values. What is under `measured` is another at each run; all else is the same."""
        told: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("arm", "verdict", "pairs", "bare_right", "right", "gains", "harms")
        }
        told |= {"gain": _interval_dict(self.gain), "answered": self.answered, "changed": self.changed}
        told["unrelated"] = {
            **{"pairs": self.unrelated, "harms": self.unrelated_harms},
            "harm": _interval_dict(self.unrelated_harm),
        }
        told |= {
            "apart": dict(self.apart),
            "tokens": _interval_dict(self.tokens),
            "dollars": _interval_dict(self.dollars),
        }
        told["agents"] = [
            {
                "agent": agent,
                **{
                    arm: {name: value for name, value in amounts.items() if name != "seconds"}
                    for arm, amounts in arms.items()
                },
            }
            for agent, arms in self.agents.items()
        ]
        told["measured"] = {
            "seconds": _interval_dict(self.seconds),
            "agents": {
                agent: {arm: round(amounts["seconds"], 4) for arm, amounts in arms.items()}
                for agent, arms in self.agents.items()
            },
        }
        return told


@dataclass(frozen=True, slots=True)
class Report:
    """A replay compared, arm by arm. `worst` are the cases to look at first, for each arm."""

    turns: int
    arms: tuple[Compared, ...]
    worst: Mapping[str, Sequence[Replayed]]
    replays: Replays

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the texts of the worst cases."""
        return {
            "turns": self.turns,
            "arms": [each.to_dict() for each in self.arms],
            "worst": {arm: [_case(each, arm) for each in cases] for arm, cases in self.worst.items()},
        }

    def cases(self) -> list[dict[str, Any]]:
        """Every turn in every arm, with its texts."""
        return [_case(turn, arm.arm) for arm in self.arms for turn in self.replays.turns]

    def lines(self) -> Iterator[str]:
        """The report in text."""
        for each in self.arms:
            yield from _lines(each)
            for case in self.worst[each.arm]:
                yield ""
                yield from _case_lines(case, each.arm)
            yield ""


def reported(
    replays: Replays,
    *,
    prices: Prices | None = None,
    interval: Literal["exact", "bootstrap"] = "exact",
    seed: int = 7,
    worst: int = 3,
) -> Report:
    """Compare the arms of a replay with the bare graph.

    Args:
        interval: That of gain: exact, each turn a pair by itself; or by resampling whole threads. Amounts are
            always resampled.
        seed: Of the resampling.
        worst: How many cases to tell of each arm.
    """
    prices = prices or Prices()
    arms = [arm for arm in replays.arms if arm != BARE]
    compared = tuple(_compared(replays.turns, arm, prices, interval, seed) for arm in arms)
    cases = {arm: _worst(replays.turns, arm)[:worst] for arm in arms}
    return Report(len(replays.turns), compared, cases, replays)


def _compared(
    turns: Sequence[Replayed], arm: str, prices: Prices, interval: Literal["exact", "bootstrap"], seed: int
) -> Compared:
    apart = Counter(why for turn in turns if (why := _why_uncounted(turn, arm)) is not None)
    answered = [turn for turn in turns if _both_answers(turn, arm) is not None and not turn.lacks]
    pairs = [turn for turn in answered if _why_uncounted(turn, arm) is None]
    gains, harms = sum(_gain(turn, arm) > 0 for turn in pairs), sum(_gain(turn, arm) < 0 for turn in pairs)
    unrelated = [turn for turn in pairs if turn.asked.unrelated]
    unrelated_harms = sum(_gain(turn, arm) < 0 for turn in unrelated)
    by_thread: dict[str, list[Replayed]] = {}
    for turn in answered:
        by_thread.setdefault(turn.thread, []).append(turn)
    judged = [[float(_gain(turn, arm)) for turn in group if turn in pairs] for group in by_thread.values()]
    exactly = exact_gain(gains, harms, len(pairs))

    def difference(amount: Any) -> Interval | None:
        groups = [
            [amount(turn.answers[arm]) - amount(turn.answers[BARE]) for turn in group]
            for group in by_thread.values()
        ]
        return resampled(groups, seed=seed)

    return Compared(
        arm=arm,
        pairs=len(pairs),
        bare_right=sum(bool(turn.answers[BARE].is_right) for turn in pairs),
        right=sum(bool(turn.answers[arm].is_right) for turn in pairs),
        gains=gains,
        harms=harms,
        gain=exactly if interval == "exact" else resampled(judged, seed=seed),
        unrelated=len(unrelated),
        unrelated_harms=unrelated_harms,
        unrelated_harm=share(unrelated_harms, len(unrelated)),
        answered=len(answered),
        changed=sum(turn.answers[BARE].text != turn.answers[arm].text for turn in answered),
        apart=dict(sorted(apart.items())),
        tokens=difference(lambda each: sum(cost.get("tokens_in", 0) for cost in each.costs.values())),
        dollars=difference(lambda each: sum(map(prices.of, each.costs.values()))),
        seconds=difference(lambda each: each.took),
        agents=_by_agent(answered, arm, prices),
    )


def _both_answers(turn: Replayed, arm: str) -> tuple[Answered, Answered] | None:
    """The two answers, where both arms gave one."""
    bare, other = turn.answers[BARE], turn.answers[arm]
    return (bare, other) if bare.fate == other.fate == "answered" else None


def _why_uncounted(turn: Replayed, arm: str) -> str | None:
    """Why a turn counts in no figure of gain and harm; None: it counts."""
    bare, other = turn.answers[BARE], turn.answers[arm]
    if turn.lacks:
        return "the graph lacks tools of the recording"
    for fate, told in (
        ("raised", "raised"),
        ("interrupted", "waited for a person"),
        ("not reached", "not reached"),
    ):
        ways = [name for name, each in (("bare", bare), ("with memory", other)) if each.fate == fate]
        if ways:
            return f"{told}, {'both ways' if len(ways) > 1 else f'{ways[0]} alone'}"
    if bare.judge_error or other.judge_error:
        return "the judge failed"
    if bare.is_right is None or other.is_right is None:
        return "nothing to judge it by"
    return None


def _gain(turn: Replayed, arm: str) -> int:
    """1 where memory alone is right, -1 where the bare graph alone is."""
    return bool(turn.answers[arm].is_right) - bool(turn.answers[BARE].is_right)


def _worst(turns: Sequence[Replayed], arm: str) -> list[Replayed]:
    """Answers that memory made wrong first, then errors that only memory raised, then answers wrong despite a
    note."""

    def rank(turn: Replayed) -> int | None:
        bare, other = turn.answers[BARE], turn.answers[arm]
        if _why_uncounted(turn, arm) is None and _gain(turn, arm) < 0:
            return 0
        if other.fate == "raised" and bare.fate != "raised":
            return 1
        return 2 if other.is_right is False and other.notes else None

    ranked = [(place, turn) for turn in turns if (place := rank(turn)) is not None]
    return [turn for _, turn in sorted(ranked, key=lambda each: each[0])]


def _by_agent(turns: Sequence[Replayed], arm: str, prices: Prices) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for turn in turns:
        for name in (BARE, arm):
            answer = turn.answers[name]
            for agent, costs in answer.costs.items():
                ways = found.setdefault(agent, {each: _zero_amounts() for each in (BARE, arm)})
                for amount in _AMOUNTS:
                    ways[name][amount] += costs.get(amount, 0)
                ways[name]["dollars"] = round(ways[name]["dollars"] + prices.of(costs), 9)
                ways[name]["seconds"] += answer.seconds.get(agent, 0.0)
    return dict(sorted(found.items()))


def _zero_amounts() -> dict[str, float]:
    return {**dict.fromkeys(_AMOUNTS, 0), "dollars": 0.0, "seconds": 0.0}


def _interval_dict(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else {name: round(v, 6) for name, v in interval._asdict().items()}


def _lines(each: Compared) -> Iterator[str]:
    yield f"{each.arm}: {each.verdict}"
    if each.gain is not None:
        yield (
            f"  right: bare {each.bare_right} of {each.pairs}, with memory {each.right}; gained {each.gains}"
            f", harmed {each.harms}; difference {_interval_text(each.gain, 100, '%')}"
        )
    if each.unrelated_harm is not None:
        yield (
            f"  unrelated questions: harmed {each.unrelated_harms} of {each.unrelated}, "
            f"{_interval_text(each.unrelated_harm, 100, '%', sign=False)}"
        )
    yield f"  worded otherwise: {each.changed} of {each.answered} answers"
    for told, interval, unit in (
        ("tokens read a turn", each.tokens, ""),
        ("dollars a turn", each.dollars, "$"),
        ("seconds a turn (measured)", each.seconds, "s"),
    ):
        if interval is not None and (interval.value or interval.low or interval.high):
            less = "  no difference" if interval.holds_zero else ""
            yield f"  {told}: {_interval_text(interval, 1, unit)}{less}"
    for agent, ways in each.agents.items():
        costs = (
            f"{name} {amounts['tokens_in']:,.0f} in, {amounts['tokens_out']:,.0f} out, "
            f"{amounts['calls']:.0f} calls, ${amounts['dollars']:.4f}, {amounts['seconds']:.2f} s"
            for name, amounts in ways.items()
        )
        yield f"  {agent or '(outside of a node)'}: {'; '.join(costs)}"
    for reason, count in each.apart.items():
        yield f"  not counted: {count} × {reason}"


def _interval_text(interval: Interval, scale: float, unit: str, *, sign: bool = True) -> str:
    form = f"{'+' if sign else ''}.{4 if unit == '$' else 3 if unit == 's' else 1}f"
    value, low, high = (format(each * scale, form) for each in interval)
    return f"{value}{unit} [{low}, {high}]"


def _case(turn: Replayed, arm: str) -> dict[str, Any]:
    return {
        "thread": turn.thread,
        "turn": turn.number,
        "question": turn.asked.text,
        **{
            name: {
                "fate": answer.fate,
                "answer": answer.text,
                "error": answer.error,
                "right": answer.is_right,
                "judge_error": answer.judge_error,
            }
            for name, answer in ((BARE, turn.answers[BARE]), (arm, turn.answers[arm]))
        },
        "notes": [
            {
                "reader": note.reader,
                "tokens": note.tokens,
                "records": [{"text": text, "why": reason} for text, reason in note.records],
            }
            for note in turn.answers[arm].notes
        ],
    }


def _case_lines(turn: Replayed, arm: str) -> Iterator[str]:
    yield f"  case {turn.thread}, turn {turn.number + 1}: {_line(turn.asked.text)}"
    for name in (BARE, arm):
        answer = turn.answers[name]
        verdict = {True: "right", False: "wrong", None: answer.fate}[answer.is_right]
        yield f"    {name} ({verdict}): {_line(answer.text or answer.error)}"
    for note in turn.answers[arm].notes:
        yield f"    {note.reader} was told, {note.tokens} tokens:"
        for text, reason in note.records:
            yield f"      {_line(text)} [{reason}]"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
