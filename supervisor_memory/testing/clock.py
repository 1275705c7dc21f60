"""A clock that stands still until it is moved."""

from dataclasses import dataclass

MONDAY = 1_767_571_200.0
"""2026-01-05 00:00 UTC."""


@dataclass
class FixedClock:
    """Pass it as `SupervisorMemory(clock=FixedClock())`; move it by setting `now`."""

    now: float = MONDAY

    def __call__(self) -> float:
        return self.now

    def forward(self, *, days: float) -> None:
        self.now += days * 86_400
