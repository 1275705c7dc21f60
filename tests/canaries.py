"""A store of many users, one of whom (the victim) uses unique words, and a search for traces of them."""

import base64
import hashlib
import os
import random
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.protocol import Calibration, Matrix, Vector
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Record
from supervisor_memory.stores.protocol import Commit, Committed, MemoryBackend
from supervisor_memory.testing.clock import FixedClock

__all__ = ["CANARIES", "USERS", "Dense", "World", "left_of", "traces", "vector_of", "whole"]

USERS = int(os.environ.get("ERASE_USERS", "3"))
CANARIES = 50
DIMENSION = 32
_LONG = 20  # letters of a canary
_CJK = range(0x5000, 0x9000)
_VECTOR_BYTES = 16
_WORD = 8


class Dense:
    """An embedder whose vectors are random, without a zero in them, and always the same for one text."""

    fingerprint = f"dense@1/{DIMENSION}"
    dimension = DIMENSION
    calibration = Calibration(0.3, 0.9)
    languages = ("*",)

    def embed_query(self, text: str) -> Vector:
        return vector_of(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.stack([vector_of(text) for text in texts]) if texts else np.zeros((0, DIMENSION), "f4")


def vector_of(text: str) -> Vector:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    numbers = np.random.default_rng(seed).normal(size=DIMENSION)
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


@dataclass
class World:
    """A memory with many users. `turns` repeat the victim's words."""

    memory: SupervisorMemory
    clock: FixedClock
    random: random.Random
    canaries: list[str] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    turns: list[Callable[[], object]] = field(default_factory=list)
    victim: str = ""

    @classmethod
    def made(cls, backend: MemoryBackend, *, users: int = USERS, rounds: int = 6, seed: int = 0) -> "World":
        """Fill the store user by user in turns, so that the records of users are mixed."""
        clock = FixedClock()
        settings = Settings(keep_messages=True)
        memory = SupervisorMemory(settings, backend=backend, embedder=Dense(), clock=clock)
        world = cls(memory, clock, random.Random(seed))
        world._keep_commits(backend)
        world.victim = "victim-" + world.canary()
        others = [f"user-{number}" for number in range(users - 1)]
        for number in range(rounds):
            for other in others:
                world._say(other, number)
            world._say(world.victim, number)
        assert memory.flush()
        clock.forward(days=1)
        return world

    @property
    def others(self) -> list[str]:
        return sorted({c.record.user_id for each in self.commits for c in each.changes} - {self.victim})

    @property
    def vectors(self) -> list[Vector]:
        """The victim's vectors, of every version."""
        records = [c.record for each in self.commits for c in each.changes]
        return [r.vector for r in records if r.user_id == self.victim and r.vector is not None]

    def canary(self) -> str:
        """A word that nobody has used before; every fifth word is Chinese."""
        if len(self.canaries) % 5 == 4:
            word = "".join(chr(self.random.choice(_CJK)) for _ in range(_LONG // 2))
        else:
            word = "".join(self.random.choices(string.ascii_lowercase, k=_LONG))
        self.canaries.append(word)
        return word

    def of_others(self) -> list[object]:
        """Everything that the other users can see, to the byte; numbers up to the rounding of float32."""
        seen: list[object] = []
        for user in self.others:
            for families in (None, (SESSION_FAMILY, DIGEST_FAMILY)):
                records = self.memory.get_all(user_id=user, limit=999, families=families)
                seen += [record.to_json() for record in records]
            hits = self.memory.search(f"refund tables {user}", user_id=user, threshold=0, limit=9)
            seen += [(hit.record.to_json(), round(hit.score, 5), _rounded(hit.parts)) for hit in hits]
        return seen

    def traces(self, directory: Path) -> list[str]:
        return traces(directory, self.canaries, self.vectors)

    def _say(self, user: str, number: int) -> None:
        """Write records of every kind: stated, changed, deleted, from an agent, said in a session."""
        word = self.canary if user == self.victim else lambda: f"plain{self.random.randrange(10**9)} {user}"
        memory, session, filler = self.memory, f"session-{word()}", " and so on" * self.random.randrange(40)
        scope = Scope(user, session_id=session)
        memory.write(
            f"The refund code is {word()}.{filler}", user_id=user, metadata={"note": word(), "n": number}
        )
        kept = memory.write(
            f"Ask {word()} first.", user_id=user, kind="experience", metadata={"tags": [word()]}
        )
        memory.update(kept.id, content=f"Ask {word()} last.{filler}", user_id=user)
        if number % 2:
            memory.delete(kept.id, user_id=user)
        stated = f"From now on sort the tables by {word()}."
        brought = Outcome(
            final_answer=f"The total of {word()} is {self.random.randrange(99)} percent.",
            side_effects=({"path": f"/data/{word()}.csv", "rows": 3}, f"SELECT {word()} FROM sales"),
        )

        def turn() -> None:
            memory.remember([("user", stated)], scope, turn_id=f"turn-{number}")
            agent = Scope(user, "analyst", session)
            memory.remember((), agent, outcome=brought, turn_id=f"turn-{number}")

        turn()
        if user == self.victim:
            self.turns.append(turn)
        memory.search(f"what of {stated}", user_id=user)

    def _keep_commits(self, backend: MemoryBackend) -> None:
        batch = backend.batch

        def kept(commit: Commit) -> Committed:
            self.commits.append(commit)
            return batch(commit)

        backend.batch = kept  # type: ignore[method-assign]


def _rounded(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 5) for name, value in parts.items()}


def left_of(backend: MemoryBackend, user: str) -> list[Record]:
    """All records of a user, in any status, session messages and digests too."""
    wheres = Filter(user_id=user, statuses=None).everywhere()
    return [record for each in wheres for record in backend.list(each, limit=10**6)]


def traces(directory: Path, canaries: Iterable[str], vectors: Iterable[Vector]) -> list[str]:
    """The places in the files of a directory with an end of a canary or of a vector, in any encoding."""
    fragments: dict[bytes, str] = {}
    for word in canaries:
        size = len(word) // 2  # it may be cut or packed, so that its whole shows nowhere
        for end in (word[:size], word[-size:]):
            fragments |= dict.fromkeys(_written(end), word)
    for number, vector in enumerate(vectors):
        numbers = vector.astype("<f4").tobytes()
        for part in (numbers[:_VECTOR_BYTES], numbers[-_VECTOR_BYTES:]):
            fragments |= dict.fromkeys((part, *_packed(part)), f"vector {number}")
    return [
        f"{fragments[found]} in {file.name}"
        for file in sorted(directory.rglob("*"))
        if file.is_file()
        for found in _found(fragments, file.read_bytes())
    ]


def whole(directory: Path, texts: Iterable[str]) -> set[str]:
    """The given texts, of eight bytes and more, that are in the files of a directory, in any encoding."""
    fragments = {bytes_: text for text in texts for bytes_ in _written(text) if len(bytes_) >= _WORD}
    files = [file for file in directory.rglob("*") if file.is_file()]
    return {fragments[found] for file in files for found in _found(fragments, file.read_bytes())}


def _found(fragments: Iterable[bytes], content: bytes) -> Iterator[bytes]:
    """The fragments in the content, looked up together by their first eight bytes."""
    by_start: dict[int, list[bytes]] = {}
    for fragment in fragments:
        by_start.setdefault(int.from_bytes(fragment[:_WORD], "little"), []).append(fragment)
    starts = np.array(sorted(by_start), dtype="<u8")
    begins = np.zeros(1 << 16, dtype=bool)  # which first two bytes there are, before all eight are looked for
    begins[starts & 0xFFFF] = True
    for offset in range(_WORD):
        words = np.frombuffer(content[offset:], dtype="<u8", count=max(0, len(content) - offset) // _WORD)
        rows = np.flatnonzero(begins[words & 0xFFFF])
        for row in rows[np.isin(words[rows], starts)].tolist():
            for fragment in by_start[int(words[row])]:
                if content.startswith(fragment, offset + row * _WORD):
                    yield fragment


def _written(text: str) -> Iterator[bytes]:
    utf8, utf16 = text.encode(), (text.encode("utf-16-le"), text.encode("utf-16-be"))
    escaped = "".join(f"\\u{ord(c):04x}" for c in text)
    yield from (utf8, text.upper().encode(), *utf16, escaped.encode(), escaped.upper().encode())
    yield quote(text).encode()
    for encoded in (utf8, *utf16):
        yield from _packed(encoded)


def _packed(content: bytes) -> Iterator[bytes]:
    """The text in hex, and inside of base64 at each possible offset."""
    yield from (content.hex().encode(), content.hex().upper().encode())
    for before in range(3):
        packed = base64.b64encode(bytes(before) + content)
        # What stands beside it shares the first and the last character.
        yield packed[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
