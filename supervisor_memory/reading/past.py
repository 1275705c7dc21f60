"""A look back: ports that read what was valid at a moment, as `as_of` asks."""

from dataclasses import replace
from typing import Final

from supervisor_memory.ports import Ports, Services

__all__ = ["past"]

_SECONDS: Final = 60.0
"""All records of the user are read, so that it may take longer than a recall."""


def past(services: Services, user_id: str, when: float) -> Ports:
    """Ports over the user's records as they were then; their `now` is that moment.

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
