"""How a record came to say what it says, on the command line."""

from supervisor_memory import SupervisorMemory
from tests.interfaces.conftest import Run


def test_the_history_of_a_record_has_every_version_and_what_decided_it(run: Run, ids: dict[str, str]) -> None:
    told = run("history", ids["bo"], "--json").json["versions"]
    assert [(version["version"], version["content"]) for version in told] == [
        (1, "Bo drinks coffee."),
        (2, "Bo drinks black coffee."),
    ]
    text = run("history", ids["bo"]).stdout
    assert text.index("Bo drinks coffee.") < text.index("by update of")


def test_a_difference_shows_what_was_put_in_and_what_was_taken_out(run: Run, ids: dict[str, str]) -> None:
    assert run("diff", ids["bo"]).stdout == "Bo drinks {+black +}coffee.\n"
    assert run("diff", ids["bo"], "--from", "2", "--to", "1").stdout == "Bo drinks [-black -]coffee.\n"
    parts = run("diff", ids["bo"], "--json").json["parts"]
    assert "".join(part["text"] for part in parts if part["what"] != "del") == "Bo drinks black coffee."


def test_chinese_is_compared_character_by_character(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        written = memory.write("报告每周一发送。", user_id="ada").id
        memory.update(written, content="报告每周三发送。", user_id="ada")
    assert run("diff", written).stdout == "报告每周[-一-]{+三+}发送。\n"


def test_a_version_that_there_is_not_is_named(run: Run, ids: dict[str, str]) -> None:
    done = run("diff", ids["bo"], "--from", "1", "--to", "7")
    assert done.code == 1
    assert "no version 7; it has 1 to 2" in done.stderr


def test_a_record_of_one_version_does_not_differ(run: Run, ids: dict[str, str]) -> None:
    assert run("diff", ids["table"]).stdout == "Use tables by default.\n"
