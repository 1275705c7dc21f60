"""Which task a conclusion belongs to: the host's, or the issue key that the user's words are about."""

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.stages.insert.tasks_and_metrics import issue_key
from tests.cases import every_case


@every_case(
    "said",
    [
        "AIR-12: what is new?",
        "For AIR-12, how late were departures?",
        "Hi team, AIR-12: what next?",
        "[AIR-12] compare the winters",
        "Go on with ticket AIR-12.",
        "Please continue AIR-12.",
        "What is the status of AIR-12?",
        "AIR-12 finding from Analysis: snow",
        "请继续处理工单AIR-12。",
        "AIR-12 进展：查到五条",
        "关于AIR-12，怎么样了",
    ],
)
def test_a_key_that_the_words_are_about_names_a_task(said: str) -> None:
    assert issue_key([said]) == "air-12"


@every_case(
    "said",
    [
        "How did COVID-19 change that?",
        "COVID-19 cases in March?",
        "Is the export in UTF-8?",
        "Save it as UTF-8.",
        "Dates follow ISO-8601, please.",
        "它是UTF-8吗？",
        "Use GPT-4 for that.",
        "Work with UTF-8 files.",
        "air-12: in small letters",
    ],
)
def test_a_code_that_is_only_mentioned_names_none(said: str) -> None:
    assert issue_key([said]) is None


@every_case("said", [["AIR-12: x", "AIR-15: y"], ["continue AIR-12 and ticket AIR-15"], []])
def test_two_keys_name_none(said: list[str]) -> None:
    assert issue_key(said) is None


def test_what_the_user_asked_can_be_told_with_what_the_agent_brought() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        for found in ("Delays rose by 5 percent in March.", "Fares fell by 3 percent in May."):
            brought = Outcome(final_answer=found, asked="AIR-12: what is new?")
            memory.remember((), Scope("ada", "analyst"), outcome=brought)
        [record] = memory.get_all(user_id="ada")
    assert (record.subject, record.content.count("\n")) == ("air-12", 1)


def test_a_record_that_is_corrected_by_hand_stays_the_one_of_its_task() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        first = memory.write("Delays rose by 5 percent.", user_id="ada", kind="task-traces", task="delays")
        memory.update(first.id, content="Delays rose by 6 percent.")
        step = memory.write("Snow explains most.", user_id="ada", kind="task-traces", task="delays")
        assert (step.id, step.status) == (first.id, "appended")
        memory.revert(first.id, version=1)
        assert memory.get(first.id).content == "Delays rose by 5 percent."


def test_an_agents_step_does_not_change_what_the_user_wrote_of_the_task() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        mine = memory.write("AIR-12: opened", user_id="ada", kind="task-traces", agent_id="analyst")
        brought = Outcome(final_answer="Snow explains 40 percent.", asked="AIR-12: why?")
        memory.remember((), Scope("ada", "analyst"), outcome=brought)
        assert memory.get(mine.id).content == "AIR-12: opened"
        assert len(memory.get_all(user_id="ada")) == 2
