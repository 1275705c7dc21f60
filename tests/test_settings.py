"""Settings: where each comes from, and what is said about a wrong one."""

import warnings
from pathlib import Path

import pytest

from common.config import Config
from supervisor_memory.errors import SettingsError
from supervisor_memory.settings import Settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.env_names().values():
        monkeypatch.delenv(name, raising=False)


def dotenv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / ".env"
    path.write_text(text, encoding="utf-8")
    return path


def test_argument_beats_environment_beats_dotenv_beats_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dotenv(tmp_path, "MEMORY_TOP_K=3\nMEMORY_MAX_NOTES=4\nMEMORY_BACKEND=sqlite\n")
    monkeypatch.setenv("MEMORY_TOP_K", "7")
    monkeypatch.setenv("MEMORY_MAX_NOTES", "8")
    settings = Settings.from_env(path, max_notes=9)
    assert (settings.backend, settings.top_k, settings.max_notes, settings.min_score) == ("sqlite", 7, 9, 0.3)
    origins = [settings.origin(name) for name in ("backend", "top_k", "max_notes", "min_score")]
    assert origins == [".env", "environment", "argument", "default"]


def test_the_constructor_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "sqlite")
    assert Settings().backend == "in_memory"


def test_an_unknown_name_in_dotenv_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"MEMORY_BAKEND.*did you mean MEMORY_BACKEND"):
        Settings.from_env(dotenv(tmp_path, "MEMORY_BAKEND=sqlite\n"))


def test_an_unknown_name_in_the_environment_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_TOPK", "5")
    with pytest.warns(UserWarning, match=r"MEMORY_TOPK.*did you mean MEMORY_TOP_K"):
        Settings.from_env(None)


def test_names_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Settings.from_env(dotenv(tmp_path, "OPENAI_API_KEY=x\nCHAT_MODEL=y\n"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("MEMORY_TOP_K=0", "MEMORY_TOP_K='0': .*greater than or equal to 1"),
        ("MEMORY_MIN_SCORE=2", "MEMORY_MIN_SCORE"),
        ("MEMORY_BACKEND=redis", "MEMORY_BACKEND='redis'.*'sqlite'"),
        ('MEMORY_NAMESPACES={"a": "b/c"}', "'b/c' cannot be a family"),
        ("MEMORY_NAMESPACES={a}", "namespaces.*JSON"),
        ('MEMORY_DECAY_LAMBDAS={"user-profile": -1}', "negative"),
        ('MEMORY_SOURCE_BOOSTS={"user": 3}', "outside"),
        ('MEMORY_TTL_DAYS={"experience": NaN}', "MEMORY_TTL_DAYS.*finite"),
        ('MEMORY_TTL_DAYS={"experience": Infinity}', "MEMORY_TTL_DAYS.*finite"),
        ("MEMORY_DECAY_LAMBDA=inf", "MEMORY_DECAY_LAMBDA.*finite"),
        ("MEMORY_TRACE_URL=javascript:alert({run})", "MEMORY_TRACE_URL.*http address"),
        ("MEMORY_TRACE_URL=https://traces.example/", r"MEMORY_TRACE_URL.*\{run\}"),
        ("MEMORY_TRACE_URL=https://traces.example/{user}", "MEMORY_TRACE_URL.*nothing else"),
        (
            "MEMORY_WEIGHT_RELEVANCE=0\nMEMORY_WEIGHT_DECAY=0\nMEMORY_WEIGHT_SOURCE=0",
            "all weights of the score",
        ),
    ],
)
def test_a_value_out_of_range_is_named_with_its_limits(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Settings.from_env(dotenv(tmp_path, line + "\n"))


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    settings = Settings.from_env(dotenv(tmp_path, "QDRANT_KEY=hunter2\n"))
    assert "hunter2" not in repr(settings)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().top_k = 3


def test_every_setting_says_what_it_means() -> None:
    assert all(field.description for field in Settings.model_fields.values())
    asked = {"EMBEDDING_MODEL", "EMBEDDING_DIM", "QDRANT_URL", "QDRANT_KEY"} | {
        f"MEMORY_{name}"
        for name in (
            "BACKEND",
            "TOP_K",
            "MIN_SCORE",
            "DECAY_LAMBDA",
            "MAX_CONTEXT_TOKENS",
            "NAMESPACES",
            "PATH",
        )
    }
    assert asked <= set(Settings.env_names().values())


def test_the_example_file_is_valid_and_chooses_sqlite() -> None:
    assert Settings.from_env(Path(__file__).parent.parent / ".env.example").backend == "sqlite"


def test_the_team_reads_the_same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_MODEL", "multilingual-e5-small")
    monkeypatch.setenv("EMBEDDING_DIM", "384")
    monkeypatch.setenv("MEMORY_BACKEND", "json")
    team, library = Config(), Settings.from_env(None)
    assert (team.embedding_model, team.embedding_dim, team.memory_backend) == (
        library.embedding_model,
        library.embedding_dim,
        library.backend,
    )
