"""The example of three steps: from topics to records and digests, and from each to the words behind it."""

from pathlib import Path

from tests import programs

EXAMPLE = Path(__file__).parent.parent.parent / "examples/09_from_topics_to_words.py"


def test_each_step_leads_to_the_next() -> None:
    done = programs.run(EXAMPLE, cwd=EXAMPLE.parent.parent, timeout=120, check=True)
    overview, question = done.stdout.split("\n\n")
    for kind, record in (
        ("user-profile(user)", "From now on show delays in minutes."),
        ("domain-facts(delayed)", "Delayed means arrival more than 15 minutes late."),
    ):
        step = overview[overview.index(f"- {kind}: ") :].split("\n- ")[0]
        assert f"record  {record}" in step
        [said] = [line for line in step.splitlines() if "said  * " in line]
        assert said.endswith(record)
    assert "records  []" in question  # no record tells of it, so only the digest finds it
    assert "digest  Open: The chart of June has not been redrawn yet." in question
    assert question.index("digest") < question.index("said    Lena was ill, so it slipped by a week.")
