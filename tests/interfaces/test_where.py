"""The options of `search` and `list` that say which records are meant."""

from datetime import datetime

import pytest

from supervisor_memory import SupervisorMemory
from tests.interfaces.conftest import Run

APOLLO, GEMINI = "The launch window of apollo is in May.", "The launch window of gemini is in June."


@pytest.fixture(autouse=True)
def _launches(backend: str) -> None:
    assert backend
    with SupervisorMemory.from_env() as memory:
        for text, project, month in ((APOLLO, "apollo", 5), (GEMINI, "gemini", 6)):
            memory.write(
                text,
                user_id="ada",
                kind="experience" if project == "apollo" else "domain-facts",
                metadata={
                    "project": project,
                    "month": month,
                    "done": month == 5,
                    "tags": ["launch", project],
                },
                created_at=datetime(2026, month, 1, 12),
            )


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "options",
    [
        ("--kind", "experience"),
        ("--tag", "apollo", "-t", "launch"),
        ("--until", "2026-05-01"),
        ("--since", "2026-05-01", "--until", "2026-05-31T23:59:59+00:00"),
        ("--until", str(datetime(2026, 5, 2).timestamp())),
        ("--meta", "project=apollo"),
        ("-m", "project=mercury", "-m", "project=apollo", "-m", "month=5"),
        ("-m", "month=5.0", "-m", "done=true", "-k", "identity", "-k", "experience"),
        ("-m", 'project="apollo"'),
    ],
)
def test_only_the_records_that_are_meant_are_shown(run: Run, options: tuple[str, ...]) -> None:
    for command in (
        ("search", "launch window"),
        ("search", "launch window", "--threshold", "0"),
        ("search", ""),
    ):
        found = run(*command, "-u", "ada", *options, "--json").json["hits"]
        assert [hit["record"]["content"] for hit in found] == [APOLLO]
    (listed,) = run("list", "-u", "ada", *options, "--json").json["records"]
    assert listed["content"] == APOLLO


@pytest.mark.parametrize(
    "entry",
    ["month=6", "month=5=5", 'month="5"', "done=1", "done=True", "project=", "missing=null", "month=[5]"],
)
def test_a_value_is_compared_as_json_has_it(run: Run, entry: str) -> None:
    found = run("list", "-u", "ada", "--tag", "apollo", "--meta", entry, "--json").json["records"]
    assert found == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--meta", "project"), "error: --meta 'project' has no '='; write KEY=VALUE"),
        (("--meta", "the project=x"), "error: metadata has no key 'the project'"),
        (("--meta", "n=1e999"), "error: metadata.n is inf"),
        (("--kind", "facts"), "error: where.kind is 'facts'; use one of user-profile"),
        (("--since", "May"), "error: where.since is 'May'; pass '2026-01-31'"),
        (("--since", "2026-06-01", "--until", "2026-05-01"), "error: where.since is not before where.until"),
    ],
)
def test_what_cannot_be_asked_is_wrong_usage(run: Run, options: tuple[str, ...], told: str) -> None:
    for command in (("search", "launch"), ("list",)):
        answer = run(*command, "-u", "ada", *options)
        assert (answer.code, answer.stdout) == (2, "")
        assert answer.stderr.startswith(told)


def test_nothing_asked_shows_what_is_pinned_and_what_is_recent_and_says_so(run: Run) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.write("Never launch on a Monday.", user_id="ada", metadata={"pinned": True}, created_at=0)
    told = run("search", "", "-u", "ada").stdout
    assert [
        line for line in told.splitlines() if line.startswith(("1. ", "2. ", "   pinned", "   recent"))
    ] == [
        "1. 0.00  Never launch on a Monday.",
        "   pinned",
        f"2. 0.00  {GEMINI}",
        "   recent",
        "   recent",
    ]
    assert "Never launch" in run("search", "", "-u", "ada", "--explain").stdout


def test_a_long_question_is_read_to_where_a_note_says(run: Run) -> None:
    told = run("search", "launch window " * 1_000, "-u", "ada")
    assert "the question has 14,000 characters; the first 8,000 were read" in told.stderr
    assert "degraded" not in told.stderr
