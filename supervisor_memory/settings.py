"""Every setting, with its default, range and meaning; read once at the start, then frozen and passed on.

`Settings(...)` takes arguments and defaults only. `Settings.from_env()` also reads the process
environment and a `.env` file. Precedence: argument > environment > `.env` > default.
"""

import difflib
import os
import warnings
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, Literal, cast

import pydantic_settings
from pydantic import AliasChoices, BaseModel, Field, PrivateAttr, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, SettingsConfigDict

from supervisor_memory.errors import SettingsError
from supervisor_memory.model.records import Kind, SourceClass, Weights, check_family, check_name
from supervisor_memory.redact.types import read_regions, read_types

Origin = Literal["argument", "environment", ".env", "recipe", "default"]


def _setting(name: str, default: Any, meaning: str, **limits: Any) -> Any:
    """A field that is `name` in the environment and its Python name in code."""
    return Field(
        default=default,
        description=meaning,
        validation_alias=AliasChoices(name, name.removeprefix("MEMORY_").lower()),
        json_schema_extra={"env": name},
        **limits,
    )


BACKENDS: Final = "supervisor_memory.backends"
"""The group of entry points under which other packages publish stores; see `stores/open.py`."""
_BACKENDS: Final = ("in_memory", "json", "sqlite", "qdrant")


class Settings(BaseSettings):
    """All settings of the library. The environment names are in each field's `env`."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", case_sensitive=True, env_ignore_empty=True, allow_inf_nan=False
    )

    enabled: bool = _setting("MEMORY_ENABLED", True, "False: the wrapped graph runs as if it were bare.")
    backend: str = _setting(
        "MEMORY_BACKEND",
        "in_memory",
        "Where records are kept: in_memory (volatile), json, sqlite, qdrant, or the name of a store that an "
        "installed package publishes; see docs/recipes.md.",
    )
    path: Path = _setting("MEMORY_PATH", Path(".supervisor_memory"), "Directory of the store's files.")
    top_k: int = _setting("MEMORY_TOP_K", 5, "Hits a search returns.", ge=1, le=1000)
    min_score: float = _setting(
        "MEMORY_MIN_SCORE", 0.3, "Relevance in [0, 1] below which a hit is dropped, before decay and boosts.", ge=0, le=1
    )  # fmt: skip
    knee: float = _setting(
        "MEMORY_KNEE",
        0.7,
        "Share of the best hit's match under which a note ends, at the first clear step down; 0: nowhere.",
        ge=0,
        le=1,
    )
    weight_relevance: float = _setting(
        "MEMORY_WEIGHT_RELEVANCE", 0.97, "α: weight of relevance in the score.", ge=0, le=1000
    )
    weight_decay: float = _setting(
        "MEMORY_WEIGHT_DECAY", 0.02, "β: weight of recency in the score.", ge=0, le=1000
    )
    weight_source: float = _setting(
        "MEMORY_WEIGHT_SOURCE", 0.01, "γ: weight of who said it in the score.", ge=0, le=1000
    )
    weight_importance: float = _setting(
        "MEMORY_WEIGHT_IMPORTANCE", 0.0, "δ: weight of a record's importance in the score.", ge=0, le=1000
    )
    weight_reads: float = _setting(
        "MEMORY_WEIGHT_READS",
        0.0,
        "ρ: weight of how often a record was handed out, by this machine's access log.",
        ge=0,
        le=1000,
    )
    signal_weights: Mapping[str, float] = _setting(
        "MEMORY_SIGNAL_WEIGHTS",
        {},
        "What a signal counts in the match, where it differs from the default: see docs/ranking.md.",
    )
    decay_lambda: float = _setting(
        "MEMORY_DECAY_LAMBDA", 0.0231, "λ per day; 0.0231 halves in 30 days.", ge=0
    )
    decay_lambdas: Mapping[Kind, float] = _setting(
        "MEMORY_DECAY_LAMBDAS",
        {"user-profile": 0.0, "identity": 0.0, "domain-facts": 0.0038},
        "λ per kind where it differs: preferences do not age, definitions halve in half a year.",
    )
    decay_floor: float = _setting(
        "MEMORY_DECAY_FLOOR",
        0.05,
        "Least recency an old record keeps; metadata.pinned keeps all of it.",
        ge=0,
        le=1,
    )
    source_boosts: Mapping[SourceClass, float] = _setting(
        "MEMORY_SOURCE_BOOSTS",
        {"user": 1.0, "agent": 0.6, "system": 0.5, "tool": 0.3},
        "What the source adds, times γ, each in [0, 1].",
    )
    ttl_days: Mapping[Kind, float] = _setting(
        "MEMORY_TTL_DAYS",
        {},
        "Days a record of a kind is found; no entry: for ever. metadata.ttl (seconds) wins.",
    )
    capacity: int = _setting(
        "MEMORY_CAPACITY",
        10_000,
        "Active records a namespace holds; of more, those worth least are set aside, which can be undone.",
        ge=1,
    )
    forget: Literal["expired", "auto", "manual"] = _setting(
        "MEMORY_FORGET",
        "expired",
        "What is set aside in the background. expired: what nobody finds any more, and what is over "
        "MEMORY_CAPACITY; auto: also the oldest of too many of a kind, as a summary, once settled; manual: "
        "nothing, `supervisor-memory forget` does.",
    )
    compact_over: Mapping[Kind, int] = _setting(
        "MEMORY_COMPACT_OVER",
        {"task-traces": 100, "tool-effects": 100, "experience": 100},
        "Active records of a kind in a namespace from which on the oldest are merged into a summary, "
        "0 or no entry: never. The newest 50 stay as they are.",
    )
    compressed_days: float = _setting(
        "MEMORY_COMPRESSED_DAYS", 90, "Days that records are kept as compressed once they were merged.", ge=0
    )
    forget_decayed: bool = _setting(
        "MEMORY_FORGET_DECAYED",
        False,
        "Whether `supervisor-memory forget` also sets aside what has decayed to MEMORY_DECAY_FLOOR, was never "
        "read and is of no importance.",
    )
    duplicate_threshold: float = _setting(
        "MEMORY_DUPLICATE_THRESHOLD",
        0.5,
        "Chance in [0, 1], from which two texts count as about the same thing: merged, or one replaced.",
        ge=0,
        le=1,
    )
    conflict_threshold: float = _setting(
        "MEMORY_CONFLICT_THRESHOLD",
        0.5,
        "Likeness in [0, 1] from which two texts on one subject are compared as rivals.",
        ge=0,
        le=1,
    )
    max_context_tokens: int = _setting("MEMORY_MAX_CONTEXT_TOKENS", 800, "Tokens a note may take.", ge=0)
    max_notes: int | None = _setting(
        "MEMORY_MAX_NOTES",
        None,
        "Lines a note may hold; unset: as many as its tokens hold.",
        ge=0,
        le=100,
    )
    session_quiet: float = _setting(
        "MEMORY_SESSION_QUIET",
        1_800.0,
        "Seconds without a message after which a session counts as ended, and gets a digest; 0: none are made.",
        ge=0,
    )
    recall_said: Literal["auto", "always", "never"] = _setting(
        "MEMORY_RECALL_SAID",
        "auto",
        "What notes quote of earlier conversations: auto as much as is worth more than further records, always "
        "a third of the tokens at least where there is enough, never nothing.",
    )
    standing_notes: int = _setting(
        "MEMORY_STANDING_NOTES",
        3,
        "Preferences of the user that are recalled whatever the question.",
        ge=0,
        le=100,
    )
    tokenizer: Literal["approximate"] = _setting("MEMORY_TOKENIZER", "approximate", "The counter of tokens.")
    namespaces: Mapping[str, str] = _setting(
        "MEMORY_NAMESPACES", {}, "Agent → family, as JSON, where it is not {agent}_memories."
    )
    review: Literal["off", "risky", "all"] = _setting(
        "MEMORY_REVIEW",
        "off",
        "What waits until a person approves it: risky (contradictions of the user, instruction-like text, "
        "low confidence), or all. What agents and tools say about the user waits in any case.",
    )
    keep_messages: bool = _setting(
        "MEMORY_KEEP_MESSAGES", True, "Keep what was said, word for word, as session messages."
    )
    redact: str = _setting(
        "MEMORY_REDACT",
        "off",
        "What is taken out of texts before they are kept: pii, secrets, all, off, or types such as email,phone; "
        "see docs/redaction.md.",
    )
    phone_regions: str = _setting(
        "MEMORY_PHONE_REGIONS",
        "CN,US",
        "Countries whose phone numbers are known without a country code, by two letters.",
    )
    recipe: str = _setting(
        "MEMORY_RECIPE",
        "default",
        "The operators of the six stages: default, the name of another recipe, ours or of an installed "
        "package, or a .toml or .yaml file; see docs/recipes.md.",
    )
    llm: str | None = _setting(
        "MEMORY_LLM", None, "A model to sharpen extraction and merging, as init_chat_model names it."
    )
    route: Literal["rules", "model", "always"] = _setting(
        "MEMORY_ROUTE",
        "rules",
        "Who decides whether a turn needs a note: rules; model (MEMORY_LLM where the rules are unsure, for 300 ms at "
        "most); always: every turn searches.",
    )
    prompts: Path | None = _setting(
        "MEMORY_PROMPTS", None, "A directory with prompts of your own; see docs/extracting.md."
    )
    search_timeout_ms: int = _setting("MEMORY_SEARCH_TIMEOUT_MS", 800, "Deadline of a recall.", ge=1)
    write_timeout_ms: int = _setting("MEMORY_WRITE_TIMEOUT_MS", 5000, "Deadline of a write-back.", ge=1)
    llm_timeout_ms: int = _setting(
        "MEMORY_LLM_TIMEOUT_MS", 20_000, "Deadline of one call to MEMORY_LLM.", ge=1
    )
    capture_tools: tuple[str, ...] = _setting(
        "MEMORY_CAPTURE_TOOLS",
        (
            *("*sql*", "*query*", "*write*", "*save*", "*export*", "*create*", "*insert*", "*update*"),
            *("*edit*", "*report*", "*chart*", "*plot*", "*python*", "*bash*", "*shell*", "*execute*"),
        ),
        "Tools whose results are events to remember from, as globs of their names; see docs/queue.md.",
    )
    skip_tools: tuple[str, ...] = _setting(
        "MEMORY_SKIP_TOOLS",
        (
            *("*read*", "*list*", "*grep*", "*glob*", "*schema*", "*describe*", "*search*", "get_*"),
            *("ls", "task", "think", "transfer_*", "write_todos"),
        ),
        "Tools whose results are none, whatever MEMORY_CAPTURE_TOOLS says; memory tools never are.",
    )
    skip_commands: tuple[str, ...] = _setting(
        "MEMORY_SKIP_COMMANDS",
        (
            *("pragma *", "explain *", "show *", "describe *", "desc *", ".tables*", ".schema*"),
            *("*sqlite_master*", "*sqlite_schema*", "*information_schema*", "*pg_catalog*"),
            *("git status*", "git log*", "git diff*", "git show*", "ls", "ls *", "cat *", "pwd"),
            *("head *", "tail *", "grep *", "npm install*", "pip install*", "cargo build*"),
        ),
        "SQL and shell commands, as globs in lower case, that only look; a call with one is no event.",
    )
    specialists: tuple[str, ...] = _setting(
        "MEMORY_SPECIALISTS",
        ("personal",),
        "What is looked for: by MEMORY_LLM personal, procedural, tool, identity, or paths of .toml files of your own; "
        "without it functions of your own, as name@version or package.module:name. See docs/specialists.md.",
    )
    experience: bool = _setting(
        "MEMORY_EXPERIENCE",
        True,
        "Learn from calls of tools that failed and then worked, and tell it to the agent that calls the tool; see "
        "docs/experience.md.",
    )
    experience_days: float = _setting(
        "MEMORY_EXPERIENCE_DAYS", 180, "Days a lesson is told after it was learned or held last.", gt=0
    )
    team: str = _setting(
        "MEMORY_TEAM",
        "",
        "Name of the team whose users all read what a person has promoted for it; empty: nothing is shared. See "
        "docs/sharing.md.",
    )
    queue_worker: bool = _setting(
        "MEMORY_QUEUE_WORKER",
        True,
        "Read events and embed messages in the background; False: at flush() and a user's next message alone.",
    )
    queue_min_events: int = _setting(
        "MEMORY_QUEUE_MIN_EVENTS",
        3,
        "Events of a user that must wait before MEMORY_LLM is asked about them in the background.",
        ge=1,
    )
    queue_cooldown_s: float = _setting(
        "MEMORY_QUEUE_COOLDOWN_S",
        300,
        "Seconds between two such calls for one user, over all processes.",
        ge=0,
    )
    queue_llm_timeout_ms: int = _setting(
        "MEMORY_QUEUE_LLM_TIMEOUT_MS", 90_000, "Deadline of one such call, for which nobody waits.", ge=1
    )
    queue_run_timeout_ms: int = _setting(
        "MEMORY_QUEUE_RUN_TIMEOUT_MS", 180_000, "Deadline of one run over the queue in the background.", ge=1
    )
    dual_write: bool = _setting(
        "MEMORY_DUAL_WRITE",
        False,
        "Keep a copy of qdrant's records in MEMORY_PATH, and read that while the server is out of reach.",
    )
    embedding_model: str | None = _setting(
        "EMBEDDING_MODEL",
        None,
        "all-MiniLM-L6-v2 (the default where extra `local` is installed), multilingual-e5-small for Chinese, "
        "none, a local path, or any sentence-transformers model.",
    )
    embedding_dim: int | None = _setting(
        "EMBEDDING_DIM", None, "Checked against the model's dimension.", ge=1
    )
    embedding_threads: int = _setting(
        "EMBEDDING_THREADS",
        1,
        "Threads of a model in ONNX form or of sentence-transformers; our own two take one.",
        ge=1,
        le=2,
    )
    qdrant_url: str | None = _setting(
        "QDRANT_URL",
        None,
        "Address of a Qdrant server, http or https; for development also :memory: or a directory.",
    )
    qdrant_key: SecretStr | None = _setting("QDRANT_KEY", None, "API key of the Qdrant server.")
    qdrant_ca: Path | None = _setting(
        "QDRANT_CA", None, "PEM file of the certificates to trust, where they are not the system's."
    )
    qdrant_link_local: bool = _setting(
        "QDRANT_LINK_LOCAL", False, "True: QDRANT_URL may lead to a link-local or metadata address."
    )
    qdrant_prefix: str = _setting("QDRANT_PREFIX", "memory", "How the names of the collections begin.")
    qdrant_collections: Literal["family", "namespace"] = _setting(
        "MEMORY_QDRANT_COLLECTIONS",
        "family",
        "A collection for each family and embedder, or for each namespace and embedder.",
    )
    anchor_key: SecretStr | None = _setting(
        "MEMORY_ANCHOR_KEY", None, "What `supervisor-memory audit anchor` signs with; any long random text."
    )
    server_tokens: SecretStr | None = _setting(
        "MEMORY_SERVER_TOKENS",
        None,
        "Who may ask `supervisor-memory serve`: name:token:users:rights, commas in between; see docs/http.md.",
    )
    server_hosts: str = _setting(
        "MEMORY_SERVER_HOSTS",
        "",
        "Names the server goes by besides loopback, without ports, commas in between.",
    )
    server_rate: int = _setting(
        "MEMORY_SERVER_RATE", 600, "Requests a minute that the server takes of one token.", ge=1
    )
    tracing: bool = _setting(
        "MEMORY_TRACING", False, "True: calls make OpenTelemetry spans and metrics; needs the extra otel."
    )
    trace_content: bool = _setting(
        "MEMORY_TRACE_CONTENT", False, "True: spans also hold questions and texts of records."
    )
    trace_url: str | None = _setting(
        "MEMORY_TRACE_URL",
        None,
        "Where a trace viewer shows a run, for the dashboard: an address with {run}, {session} or both.",
    )

    _origins: dict[str, Origin] = PrivateAttr(default_factory=dict)

    def __init__(self, **values: Any) -> None:
        try:
            # That of BaseSettings sets up sources, which `from_env` alone reads, in thirty times as long.
            BaseModel.__init__(self, **values)
        except ValidationError as error:
            raise SettingsError(_explain(error), errors=error.errors(include_url=False)) from error
        self._origins.update(dict.fromkeys(self.model_fields_set, "argument"))

    @classmethod
    def from_env(cls, env_file: str | Path | None = ".env", **arguments: Any) -> "Settings":
        """Settings from the process environment and a `.env` file.

        Args:
            env_file: Read when it exists; None reads none.
            arguments: Win over both, by their Python names.

        Raises:
            SettingsError: a value is out of range, or `.env` holds an unknown MEMORY_* name. In the
                process environment an unknown name is a warning, since orchestrators inject such names.
        """
        environment = EnvSettingsSource(cls, case_sensitive=True, env_ignore_empty=True)
        dotenv = DotEnvSettingsSource(cls, env_file=env_file, case_sensitive=True, env_ignore_empty=True)
        known = set(cls.env_names().values())
        _refuse_unknown(set(dotenv.env_vars) - known, env_file)
        _warn_unknown({name for name in os.environ if name.startswith("MEMORY_")} - known)
        try:
            from_file = {n: v for n, v in dotenv().items() if n in known}
            from_process = dict(environment())
        except pydantic_settings.SettingsError as error:
            raise SettingsError(f"{error}; write the value as JSON", env_file=str(env_file)) from error
        fields = {env: name for name, env in cls.env_names().items()}
        merged = {fields[n]: v for n, v in {**from_file, **from_process}.items()} | arguments
        settings = cls(**merged)
        for name in merged:
            if name not in arguments:
                in_process = cls.env_names()[name] in from_process
                settings._origins[name] = "environment" if in_process else ".env"
        return settings

    @classmethod
    def env_names(cls) -> dict[str, str]:
        """Field name → environment name."""
        return {
            name: cast("dict[str, str]", field.json_schema_extra)["env"]
            for name, field in cls.model_fields.items()
        }

    def tried(self, changes: Mapping[str, Any]) -> "Settings":
        """A copy with some other values, by their Python names.

        Raises:
            SettingsError: there is no such setting, or it cannot have that value.
        """
        return Settings(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def filled(self, values: Mapping[str, Any]) -> "Settings":
        """A copy with a recipe's values for the settings that nobody has set.

        Raises:
            SettingsError: there is no such setting, it cannot have that value, or the store or a model is
                opened by it.
        """
        if bad := sorted(name for name in values if name.startswith(_AT_THE_DOOR)):
            raise SettingsError(
                f"a recipe may not set {bad[0]!r}: the store and the models are opened by it; set it in .env",
                name=bad[0],
            )
        free = {name: value for name, value in values.items() if self.origin(name) == "default"}
        if not values:
            return self
        self.tried(values)  # what it may not say it may not say either where somebody else has said it
        new = self.tried(free)
        new._origins.clear()
        new._origins.update({**self._origins, **dict.fromkeys(free, "recipe")})
        return new

    def origin(self, name: str) -> Origin:
        """Where the value of a field came from."""
        return self._origins.get(name, "default")

    def decay_of(self, kind: Kind) -> float:
        """λ per day for a kind."""
        return self.decay_lambdas.get(kind, self.decay_lambda)

    @property
    def weights(self) -> Mapping[str, float]:
        """The parts of a score → their weights."""
        return {
            "fused": self.weight_relevance,
            "decay": self.weight_decay,
            "source": self.weight_source,
            "importance": self.weight_importance,
            "reads": self.weight_reads,
        }

    @property
    def match_weights(self) -> Weights:
        """The weight of each signal in a match."""
        return Weights.of(self.signal_weights)

    @field_validator("backend", mode="after")
    @classmethod
    def _check_backend(cls, value: str) -> str:
        if value not in _BACKENDS and value not in (published := entry_points(group=BACKENDS).names):
            choices = (*_BACKENDS, *sorted(published))
            raise ValueError(f"Input should be one of {', '.join(map(repr, choices))}")
        return value

    @field_validator("trace_url", mode="after")
    @classmethod
    def _leads_to_a_run(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            filled = value.format(run="", session="")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError("it may hold {run} and {session} in braces, and nothing else") from error
        if not value.startswith(("https://", "http://")) or filled == value:
            raise ValueError("write an http address with {run}, {session} or both in it")
        return value

    @field_validator("signal_weights", mode="after")
    @classmethod
    def _are_signals(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        Weights.of(value)
        return value

    @field_validator("redact", mode="after")
    @classmethod
    def _are_types(cls, value: str) -> str:
        read_types(value)
        return value

    @field_validator("phone_regions", mode="after")
    @classmethod
    def _are_regions(cls, value: str) -> str:
        return ",".join(read_regions(value))

    @field_validator("decay_lambdas", "ttl_days", "compact_over", mode="after")
    @classmethod
    def _not_negative(cls, value: Mapping[Kind, float]) -> Mapping[Kind, float]:
        if bad := [kind for kind, number in value.items() if number < 0]:
            raise ValueError(f"{bad[0]} is negative; use 0 or more")
        return value

    @field_validator("compact_over", mode="after")
    @classmethod
    def _can_be_compacted(cls, value: Mapping[Kind, int]) -> Mapping[Kind, int]:
        if bad := [kind for kind in value if kind in ("user-profile", "identity")]:
            raise ValueError(f"{bad[0]} is never merged into a summary; leave it out")
        return value

    @field_validator("source_boosts", mode="after")
    @classmethod
    def _in_unit(cls, value: Mapping[SourceClass, float]) -> Mapping[SourceClass, float]:
        if bad := [name for name, number in value.items() if not 0 <= number <= 1]:
            raise ValueError(f"{bad[0]} is outside [0, 1]")
        return value

    @field_validator("team", mode="after")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return check_name(value, what="team") if value else value

    @field_validator("namespaces", mode="after")
    @classmethod
    def _are_families(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        return {check_name(agent, what="agent id"): check_family(family) for agent, family in value.items()}

    @field_validator("weight_reads", mode="after")
    @classmethod
    def _some_weight(cls, value: float, info: Any) -> float:
        others = ("weight_relevance", "weight_decay", "weight_source", "weight_importance")
        if value + sum(info.data.get(other, 1) for other in others) <= 0:
            raise ValueError("all weights of the score are 0; one must be positive")
        return value


_AT_THE_DOOR: Final = (
    *("backend", "path", "qdrant", "recipe", "redact", "phone", "embedding", "server", "llm", "prompts"),
    *("enabled", "namespaces", "team", "dual_write", "tracing", "trace", "queue"),
)
"""How the settings begin that a recipe may not set."""


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, Settings.env_names().values(), n=1)
    return f"did you mean {close[0]}?" if close else "see `supervisor-memory doctor --all` for the names"


def _refuse_unknown(names: set[str], env_file: str | Path | None) -> None:
    if unknown := sorted(name for name in names if name.upper().startswith("MEMORY_")):
        raise SettingsError(
            f"{env_file} sets {unknown[0]}, which is no setting; {_nearest(unknown[0])}", name=unknown[0]
        )


def _warn_unknown(names: set[str]) -> None:
    for name in sorted(names):
        warnings.warn(
            f"{name} in the environment is no setting of supervisor_memory; {_nearest(name)}", stacklevel=3
        )


def _explain(error: ValidationError) -> str:
    """The errors, a line a setting, with the names of the environment."""
    names = Settings.env_names()
    lines = []
    for fault in error.errors(include_url=False):
        key = str(fault["loc"][0]) if fault["loc"] else "settings"
        if fault["type"] == "extra_forbidden":
            lines.append(f"{key} is no setting; {_nearest('MEMORY_' + key.upper())}")
            continue
        secret = names.get(key, key) in ("QDRANT_KEY", "MEMORY_SERVER_TOKENS")
        shown = "…" if secret else repr(fault.get("input"))
        lines.append(f"{names.get(key, key)}={shown}: {fault['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)
