"""The operator's desk for a whole store, `SupervisorMemory.upkeep`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from supervisor_memory.bridge import twin
from supervisor_memory.errors import BackendError, ConfirmationRequired
from supervisor_memory.flow import Recipe
from supervisor_memory.model.arguments import check_login
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record, Scope
from supervisor_memory.ports import Services
from supervisor_memory.recipes.open import open_recipe
from supervisor_memory.stores.protocol import Health, Journals, MemoryBackend, Reconciled
from supervisor_memory.stores.sessions import place_of_one
from supervisor_memory.telemetry import of_many, spanned
from supervisor_memory.upkeep.erase import OUT_OF_REACH, Eraser, Receipt
from supervisor_memory.upkeep.experience import Experience
from supervisor_memory.upkeep.forget import Forgotten, forget
from supervisor_memory.upkeep.queue.queue import Queue
from supervisor_memory.upkeep.reembed import Reembedded, reembed, waiting_for
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from supervisor_memory.moving.arrival import Moved
    from supervisor_memory.moving.files import File
    from supervisor_memory.moving.mover import Mover, Progress
    from supervisor_memory.upkeep.optimize import Optimized, Optimizer


class Served(Protocol):
    """A memory as the target of a copy: its backend and its redactor are used."""

    @property
    def services(self) -> Services: ...


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Erases, embeds anew, forgets, exports, imports and copies; each verb has an async twin, as `aerase`."""

    services: Services
    queue: Queue
    trail: Trail
    recipe: Recipe
    experience: Experience
    OUT_OF_REACH: ClassVar = OUT_OF_REACH

    def now(self) -> float:
        """The time by the memory's clock, in seconds since 1970."""
        return self.services.clock()

    def health(self) -> Health:
        """Ask the store whether it works."""
        return self.services.backend.health()

    def records(self, ids: Sequence[str]) -> Sequence[Record]:
        """The records with these ids in any status. The access log is not told: see `memory.audit.seen`."""
        return self.services.backend.get(ids)

    def versions(self, id: str) -> Sequence[Record]:
        """All versions of a record, oldest first. The access log is not told."""
        return self.services.backend.versions(id)

    def listed(self, where: Filter, *, limit: int, after: str | None = None) -> Sequence[Record]:
        """The records that match, most recently updated first. The access log is not told.

        Args:
            after: The `cursor` of the last record of the page before.
        """
        return self.services.backend.list(replace(where, behind=place_of_one(after)), limit=limit)

    def count(self, where: Filter) -> int:
        """How many records match."""
        return self.services.backend.count(where)

    def messages_waiting(self) -> int | None:
        """The number of session messages without a vector; None: there is no embedder, or it fails."""
        embedder = self.services.ports(self.services.settings.search_timeout_ms).no_store().embedder
        return (
            None if embedder is None else self.count(waiting_for(embedder.fingerprint, None, SESSION_FAMILY))
        )

    def shared_store(self) -> str | None:
        """The name of a store that other instances change too, whose logs are elsewhere; else None."""
        backend = self.services.backend
        return backend.name if isinstance(backend, Journals) else None

    def backlog(self) -> Mapping[str, int] | None:
        """How many commits and erasures wait in the journal for the store; None: there is no journal."""
        backend = self.services.backend
        return backend.backlog() if isinstance(backend, Journals) else None

    def reconcile(self) -> Reconciled:
        """Compare the copy of MEMORY_DUAL_WRITE with the store, and mend both.

        Raises:
            BackendError: the store has no journal.
            SettingsError: no copy is kept.
            BackendUnavailable: the store is out of reach, or a commit still waits for it.
        """
        backend = self.services.backend
        if not isinstance(backend, Journals):
            raise BackendError(
                f"{backend.name} keeps records on this machine and has no journal: nothing ever waits"
            )
        return backend.reconcile()

    def erase(self, *, user_id: str, confirm: bool = False, reviewer: str = "operator") -> Receipt:
        """Remove a user for good: records, versions, vectors, words, keys, accesses. Cannot be undone.

        What was said before does not come back, however late it is written; what the user says from now
        on is remembered as ever. docs/erasure.md says what that covers.

        Args:
            reviewer: Who erases: a login, which the audit log keeps for ever.

        Raises:
            ConfirmationRequired: without `confirm=True`; its `held` tells how much it would be.
            InvalidName: `reviewer` is no login.
            BackendError: this backend cannot erase, or failed; nothing but what waited in the queue was
                removed.
            DeadlineExceeded: it takes over five minutes; it goes on. Call it again for a receipt.
        """
        scope, by = Scope(user_id), check_login(reviewer)
        eraser = Eraser(self.services, self.queue)
        if confirm is not True:
            held = eraser.holds(scope.user_id)
            raise ConfirmationRequired(
                f"erase would remove {held.get('records', 0)} records of user {scope.user_id!r} with all "
                "their versions, for good; pass confirm=True",
                held=held,
            )
        self.experience.forget(scope.user_id)
        return eraser.erase(scope.user_id, actor=by)

    def reembed(
        self, *, user_id: str | None = None, progress: Callable[[int, int], None] | None = None
    ) -> Reembedded:
        """Embed the records and messages without a vector of the present embedder: after a change of model,
        after an outage.

        They keep their version and their times. It can be cut off anywhere and called again.

        Args:
            user_id: Only this user's. None: everybody's.
            progress: Told after each commit how many were looked at, and how many waited at the start.

        Raises:
            SettingsError: there is no embedder.
            EmbeddingError: it fails on every text; what was embedded before stays so.
            BackendError, DeadlineExceeded: the store failed; what was embedded before stays so.
        """
        whose = None if user_id is None else Scope(user_id).user_id
        return reembed(self.services, whose, progress or (lambda done, total: None))

    @spanned("forget_memory", of_many(lambda given, done: len(done.taken)))
    def forget(
        self,
        *,
        user_id: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Forgotten:
        """Set aside expired records, surplus records of a kind, and records over MEMORY_CAPACITY.

        It is found no more; `get` still shows it with its status, and its versions are kept. It can be cut
        off anywhere and called again. docs/forgetting.md has the rules, and how to undo it.

        Args:
            user_id: Only this user's. None: everybody's.
            dry_run: Change nothing; tell each record that would be taken, with the rule and why.
            progress: Told now and then how many records were read, and how many there are.

        Raises:
            BackendError, DeadlineExceeded: the store failed, or is out of reach; what was done stays so.
        """
        whose = None if user_id is None else Scope(user_id).user_id
        return forget(self.services, whose, dry_run=dry_run, progress=progress)

    def optimize(
        self, *, user_id: str, chores: Sequence[str] | None = None, dry_run: bool = False
    ) -> "Optimized":
        """Run the recipe's chores over a user's records: forgetting, digests, moves between tiers.

        Args:
            chores: Their names; None: all of the recipe, in its order. `status` tells which there are.
            dry_run: Change nothing; tell each change that is due, and why.

        Raises:
            InvalidContent: the recipe has no such chore.
            BackendError, DeadlineExceeded: the store failed; what was done stays so.
        """
        return self._optimizer().optimize(Scope(user_id).user_id, chores, dry_run=dry_run)

    def undo(self, run: str, *, user_id: str) -> "Optimized":
        """Undo a run of `optimize`, by its name.

        What somebody has changed since is left, and named.

        Raises:
            RecordNotFound: the audit log has no such run of this user.
        """
        return self._optimizer().undo(run, Scope(user_id).user_id)

    def status(self, *, user_id: str) -> dict[str, Any]:
        """The recipe, the number of records, how much is due by each chore, and the first that is due."""
        return self._optimizer().status(Scope(user_id).user_id)

    def switching(self, recipe: "Recipe | str", *, user_id: str) -> Sequence[str]:
        """Tell in sentences what another recipe would do with a user's records. Nothing is changed.

        Raises:
            SettingsError: there is no such recipe, or the store lacks what it needs.
        """
        from supervisor_memory.upkeep.optimize import kept_and_reread

        to = open_recipe(recipe, self.services.backend)
        return [*kept_and_reread(self.services, to, Scope(user_id).user_id)]

    def _optimizer(self) -> "Optimizer":
        from supervisor_memory.upkeep.optimize import Optimizer

        return Optimizer(self.services, self.recipe)

    def export(
        self,
        file: "File",
        *,
        user_id: str | None = None,
        resume: bool = False,
        progress: "Progress | None" = None,
    ) -> "Moved":
        """Write all records into a file, one a line, with their versions and vectors; see docs/moving.md.

        Args:
            file: A path, which gets its name when it is whole; or a file that is open in binary mode.
            user_id: Only this user's. None: everybody's.
            resume: Go on where an export to this path was cut off.

        Raises:
            BackendError, OSError: it failed; what was written so far can be resumed.
        """
        return self._mover().export(file, user_id=user_id, resume=resume, progress=progress)

    def import_from(
        self,
        file: "File",
        *,
        user_id: str | None = None,
        progress: "Progress | None" = None,
        names_ok: Collection[str] = (),
    ) -> "Moved":
        """Import the records of a file unchanged. It may be repeated, also after a crash.

        What cannot be taken is left out and told of, line by line; the rest is taken. What a team shares is
        looked through as before a promotion.

        Args:
            names_ok: What in it has the form of a person's name, and is none; as for `memory.review.promote`.

        Raises:
            InvalidContent: it is no export at all; nothing was taken.
            BackendError: the store failed; some may have been taken. Import it again.
        """
        return self._mover().import_from(file, user_id=user_id, progress=progress, names_ok=names_ok)

    def copy_to(
        self,
        target: "MemoryBackend | Served",
        *,
        user_id: str | None = None,
        progress: "Progress | None" = None,
    ) -> "Moved":
        """Copy all records into another store as they are, as an export and an import would."""
        services = getattr(target, "services", None)
        if not isinstance(services, Services):
            return self._mover().copy_to(cast(MemoryBackend, target), user_id=user_id, progress=progress)
        redactor = services.redactor
        return self._mover().copy_to(services.backend, user_id=user_id, progress=progress, redactor=redactor)

    def _mover(self) -> "Mover":
        from supervisor_memory.moving.mover import Mover

        return Mover(self.services, self.trail)

    aerase = twin(erase)
    areembed = twin(reembed)
    aforget = twin(forget)
    aoptimize = twin(optimize)
    aundo = twin(undo)
    astatus = twin(status)
    aexport = twin(export)
    aimport_from = twin(import_from)
    acopy_to = twin(copy_to)
