"""LoCoMo's own file as corpora: `locomo10.json` of snap-research/LoCoMo (Maharana et al. 2024, CC BY-NC 4.0).

It is not shipped. A turn is said thirty seconds after the one before it; a photo is told by its caption. A
question without evidence, or whose evidence names no turn, is left out.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["as_conversation"]

_BETWEEN_TURNS: Final = 30  # seconds
_SESSION: Final = re.compile(r"session_(\d+)")


def as_conversation(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample of LoCoMo in the shape of `corpus.py`.

    Raises:
        KeyError: the sample lacks what it must have.
        ValueError: a session's date is not like "1:56 pm on 8 May, 2023".
    """
    turns = list(_turns(sample["conversation"]))
    known = {turn["id"] for turn in turns}
    questions = [
        {"q": each["question"], "cat": each["category"], "evidence": evidence}
        for each in sample["qa"]
        if (evidence := [id_ for id_ in _ids(each["evidence"]) if id_ in known])
    ]
    return {"id": sample["sample_id"], "turns": turns, "questions": questions}


def _turns(conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    numbers = sorted(int(found[1]) for name in conversation if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        begun = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for n, turn in enumerate(conversation[f"session_{number}"]):
            photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield {
                "id": turn["dia_id"],
                "session": number,
                "t": begun.replace(tzinfo=UTC).timestamp() + n * _BETWEEN_TURNS,
                "speaker": turn["speaker"],
                "text": turn["text"].strip() + photo,
            }


def _ids(evidence: list[str]) -> list[str]:
    """Ids one by one: some entries of the file hold several."""
    return list(dict.fromkeys(id_ for entry in evidence for id_ in re.split(r"[;\s]+", entry) if id_))
