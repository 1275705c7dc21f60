"""What memory knows to be related: around a thing, around a record, and between two."""

import json
import random

import pytest

from supervisor_memory import InvalidContent, Outcome, RecordNotFound, Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import SourceClass
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case

FACTS = (
    "The harbour board, also called dash_40, reads from fct_ships.",
    "The rows of fct_ships come from the job tide_job.",
    "tide_job is maintained by Nils Berg.",
    "Nils Berg sits in the Malmo office.",
    "The canteen closes at two.",
)


@pytest.fixture
def memory(clock: FixedClock) -> SupervisorMemory:
    memory = SupervisorMemory(Settings(embedding_model="none"), clock=clock)
    for fact in FACTS:
        memory.write(fact, user_id="ada")
    return memory


def way(memory: SupervisorMemory, about: str, to: str, user_id: str = "ada") -> list[tuple[str, str, str]]:
    path = memory.relations(about, user_id=user_id, to=to).path
    return [(each.source.name, each.relationship, each.destination.name) for each in path]


def test_a_thing_has_its_names_its_relations_and_the_records_that_say_so(memory: SupervisorMemory) -> None:
    told = memory.relations("dash_40", user_id="ada")
    assert {each.name for each in told.names} == {"harbour board", "dash_40"}
    [link] = [each for each in told.links if each.relationship == "reads_from"]
    assert (link.source.name, link.destination.name) == ("harbour board", "fct_ships")
    assert told.records[link.record_id].content == FACTS[0]
    [beside] = [each for each in told.neighbours if each.thing.name == "fct_ships"]
    assert beside.relationships == ("reads_from",)
    assert [each.name for each in told.upstream] == ["fct_ships", "tide_job"]
    assert [each.name for each in memory.relations("tide_job", user_id="ada").downstream] == [
        "fct_ships",
        "dash_40",
        "harbour board",
    ]


ONE_THING = [
    ("The revenue cockpit (id dash_rev) is read every Monday.", "revenue cockpit", "dash_rev"),
    ("The revenue cockpit, also called dash_rev, is slow.", "revenue cockpit", "dash_rev"),
    ("dash_rev is the id of the revenue cockpit.", "revenue cockpit", "dash_rev"),
    ("Revenue Cockpit is read every Monday.", "Revenue Cockpit", "revenue_cockpit"),
    ("营收驾驶舱（编号 dash_rev）每周一看。", "营收驾驶舱", "dash_rev"),
    ("营收驾驶舱也叫 dash_rev。", "营收驾驶舱", "dash_rev"),
    ("营收驾驶舱的 id 是 dash_rev。", "营收驾驶舱", "dash_rev"),
    ("华东履约中心简称履约中心。", "华东履约中心", "履约中心"),
]


@every_case(("told", "one", "other"), ONE_THING)
def test_a_thing_under_two_names_is_one_and_both_lead_to_all_of_it(told: str, one: str, other: str) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    is_chinese = not one.isascii()
    of_one, of_other = (
        ("{}由林月维护。", "{} 读取 fct_rev。")
        if is_chinese
        else ("{} belongs to Mara Lindt.", "{} reads from fct_rev.")
    )
    for text in (told, of_one.format(one), of_other.format(other)):
        memory.write(text, user_id="ada")
    owner = "林月" if is_chinese else "Mara Lindt"
    for name in (one, other):
        found = memory.relations(name, user_id="ada", to=owner)
        assert {each.name for each in found.names} == {one, other}
        assert {owner, "fct_rev"} <= {each.thing.name for each in found.neighbours}
        assert found.path[-1].destination.name == owner
        assert [each.name for each in found.upstream] == ["fct_rev"]


@pytest.mark.parametrize(
    ("told", "one", "other"),
    [
        ("The revenue cockpit is also called dash_rev.", "revenue cockpit", "dash_rev"),
        ("营收驾驶舱也叫 dash_rev。", "营收驾驶舱", "dash_rev"),
    ],
)
def test_two_names_are_one_thing_as_long_as_a_record_says_so(
    memory: SupervisorMemory, told: str, one: str, other: str
) -> None:
    def names(about: str) -> set[str]:
        return {each.name for each in memory.relations(about, user_id="ada").names}

    said = memory.write(told, user_id="ada")
    memory.write("dash_rev is slow on Mondays." if one.isascii() else "dash_rev 周一很慢。", user_id="ada")
    assert names(one) == names(other) == {one, other}
    joined = memory.write(told.replace("also ", ""), user_id="ada")
    assert joined.id == said.id
    assert names(one) == names(other) == {one, other}
    memory.delete(joined.id, user_id="ada")
    assert names(other) == {other}
    memory.review.restore(joined.id, user_id="ada", reviewer="nils")
    assert names(one) == names(other) == {one, other}
    memory.erase(user_id="ada", confirm=True)
    assert names(one) == names(other) == set()


@pytest.mark.parametrize(
    ("known", "told", "one"),
    [
        ("Nils Berg maintains tide_job.", "Eve Moss (Nils Berg) approves tide_job.", "Eve Moss"),
        ("倪伟维护 tide_job。", "安然也叫倪伟。", "安然"),
    ],
)
@pytest.mark.parametrize(("source", "is_joined"), [("agent", False), ("tool", False), ("user", True)])
def test_no_agent_or_tool_makes_one_thing_of_two(
    known: str, told: str, one: str, source: SourceClass, is_joined: bool
) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    memory.write(known, user_id="ada", kind="domain-facts")
    memory.write(told, user_id="ada", kind="domain-facts", source_class=source)
    found = memory.relations(one, user_id="ada")
    assert (len(found.names) == 2) is is_joined
    assert "same_as" in {link.relationship for link in found.links}  # it stays told, with who told it


@every_case(
    ("facts", "one", "label"),
    [
        (("Lena Vogt (CFO) owns pay_job.", "Ida Moe (CFO) owns tax_job."), "Lena Vogt", "CFO"),
        (("pay_job (id 17) fills a_tab.", "tax_job (id 17) fills b_tab."), "pay_job", "17"),
        (("莉娜（北京）负责 pay_job。", "王芳（北京）负责 tax_job。"), "莉娜", "北京"),
    ],
)
def test_what_stands_in_brackets_behind_two_names_names_neither(
    facts: tuple[str, str], one: str, label: str
) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    memory.write(facts[0], user_id="ada")
    memory.write(facts[1], user_id="ada", source_class="agent")
    of_one = memory.relations(one, user_id="ada")
    assert len(of_one.names) == 2  # an agent's word takes no name away
    memory.write(facts[1].replace("tax", "toll"), user_id="ada")
    of_one = memory.relations(one, user_id="ada")
    assert [name.name for name in of_one.names] == [one]
    assert "same_as" not in {link.relationship for link in of_one.links}


@every_case(
    "facts",
    [
        (
            "The revenue cockpit, also called dash_rev, is read every Monday.",
            "The revenue cockpit belongs to Mara Lindt.",
        ),
        ("营收驾驶舱也叫 dash_rev，周一要看。", "营收驾驶舱由林月维护。"),
    ],
)
def test_a_search_for_one_name_leads_to_what_is_told_under_the_other(facts: tuple[str, str]) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    for text in (*facts, *(f"Room {n} has {n + 4} chairs and a window." for n in range(20))):
        memory.write(text, user_id="ada")
    hits = memory.search("dash_rev", user_id="ada")
    assert [hit.record.content for hit in hits] == [*facts]


def test_the_way_between_two_things_is_told_step_by_step(memory: SupervisorMemory) -> None:
    assert way(memory, "dash_40", "Malmo office") == [
        ("harbour board", "reads_from", "fct_ships"),
        ("fct_ships", "reads_from", "tide_job"),
        ("tide_job", "maintained_by", "Nils Berg"),
        ("Nils Berg", "located_in", "Malmo office"),
    ]
    assert way(memory, "dash_40", "canteen") == []


def test_a_record_is_a_place_to_begin_and_to_end(memory: SupervisorMemory) -> None:
    ids = {each.content: each.id for each in memory.get_all(user_id="ada")}
    told = memory.relations(ids[FACTS[1]], user_id="ada", to=ids[FACTS[3]])
    assert {each.name for each in told.names} == {"fct_ships", "tide_job"}
    assert [each.relationship for each in told.links] == ["reads_from"]
    assert told.path[-1].destination.name == "Nils Berg"


def test_nothing_of_others_of_the_past_or_of_what_is_gone_is_told(
    memory: SupervisorMemory, clock: FixedClock
) -> None:
    memory.write("fct_ships is maintained by Eve Holm.", user_id="bo")
    assert "Eve" not in str(memory.relations("fct_ships", user_id="ada").to_dict())
    before = clock()
    clock.forward(days=1)
    [gone] = [each for each in memory.get_all(user_id="ada") if each.content == FACTS[2]]
    memory.update(gone.id, content="tide_job is maintained by Olga Stern.", user_id="ada")
    assert way(memory, "dash_40", "Malmo office") == []
    assert memory.relations("dash_40", user_id="ada", to="Malmo office", as_of=before).path
    with pytest.raises(RecordNotFound):
        memory.relations(memory.get_all(user_id="bo")[0].id, user_id="ada")
    memory.erase(user_id="ada", confirm=True)
    assert memory.relations("dash_40", user_id="ada").names == ()


def test_neighbours_come_a_page_at_a_time(memory: SupervisorMemory) -> None:
    for number in range(30):
        memory.write(f"Nils Berg maintains tank_{number:02d}.", user_id="ada")
    names: list[str] = []
    offset: int | None = 0
    while offset is not None:
        told = memory.relations("Nils Berg", user_id="ada", limit=7, offset=offset)
        assert len(told.neighbours) <= 7
        names += [each.thing.name for each in told.neighbours]
        offset = told.next
    assert len(names) == len(set(names))
    assert {f"tank_{number:02d}" for number in range(30)} <= set(names)


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_what_can_be_no_name_is_refused(memory: SupervisorMemory, name: str) -> None:
    with pytest.raises(InvalidContent, match="characters"):
        memory.relations(name, user_id="ada")


def test_circles_end_and_users_who_share_names_share_nothing() -> None:
    memory, dice = SupervisorMemory(Settings(embedding_model="none")), random.Random(4)
    users, things = ("ada", "bo", "cy"), [f"t_{number}" for number in range(12)]
    for number in range(90):
        one, other = dice.sample(things, 2)
        memory.write(f"{one} reads from {other}, says note {number}.", user_id=users[number % 3])
    for user in users:
        own = {each.id for each in memory.get_all(user_id=user, limit=1_000)}
        for one in things:
            told = memory.relations(one, user_id=user, to=dice.choice(things), limit=1_000)
            shown = {each.record_id for each in told.links} | {each.record_id for each in told.path}
            assert shown | set(told.records) <= own


def test_what_a_run_has_made_is_known_with_all_that_it_is_made_of() -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    memory.write("Late means arr_delay of more than 15 minutes.", user_id="ada")
    sql = (
        "SELECT f.origin, COUNT(CASE WHEN f.arr_delay > 15 THEN 1 END) AS late FROM flights AS f "
        "GROUP BY f.origin"
    )
    outcome = Outcome(
        conclusion={
            "conclusion": "EWR has most late flights, 50,099.",
            "sql": sql,
            "csv_path": "out/late.csv",
        },
        side_effects=(
            {"type": "sql", "sql": sql},
            {"type": "csv", "path": "out/late.csv"},
            {"type": "chart", "path": "out/late.png", "rests_on": [("file", "out/late.csv")]},
        ),
    )
    memory.remember((), Scope("ada", agent_id="analysis"), outcome=outcome)
    alone = Outcome(side_effects=({"sql": "SELECT SUM(dist) AS miles FROM trips"}, {"path": "out/miles.csv"}))
    memory.remember((), Scope("ada", agent_id="analysis"), outcome=alone)

    def found(about: str, way: str) -> set[tuple[str, str]]:
        return {(e.kind, e.name) for e in getattr(memory.relations(about, user_id="ada"), way)}

    assert found("out/late.png", "upstream") >= {
        ("file", "out/late.csv"),
        ("column", "flights.arr_delay"),
        ("column", "flights.origin"),
        ("metric", "late"),
        ("table", "flights"),
    }
    assert found("out/miles.csv", "upstream") == {
        ("column", "trips.dist"),
        ("metric", "miles"),
        ("table", "trips"),
    }
    assert ("report", "out/late.png") in found("column:flights.arr_delay", "downstream")
    assert ("report", "EWR has most late flights, 50,099.") in found("table:flights", "downstream")


STUDENT = "李明在北京大学学习计算机科学，他的导师是张教授，张教授是人工智能领域的专家。"
FOUR = [
    ["李明", "studies_at", "北京大学"],
    ["李明", "studies", "计算机科学"],
    ["李明", "advised_by", "张教授"],
    ["张教授", "expert_in", "人工智能"],
]


def four(memory: SupervisorMemory) -> list[list[str]]:
    """The relations of the two people, each once."""
    links = [each for name in ("李明", "张教授") for each in memory.relations(name, user_id="ada").links]
    told = ([each.source.name, each.relationship, each.destination.name] for each in dict.fromkeys(links))
    return sorted(told, key=lambda each: FOUR.index(each) if each in FOUR else len(FOUR))


def test_the_example_of_a_student_gives_its_four_relations_by_rules() -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    memory.write(STUDENT, user_id="ada")
    assert four(memory) == FOUR


def test_a_model_tells_relations_in_the_one_call_and_what_it_invents_is_dropped() -> None:
    invented = ["李明", "works_at", "清华大学"]
    answer = {
        "operations": [
            {
                **{"do": "add", "id": None, "content": STUDENT, "kind": "domain-facts", "subject": "李明"},
                **{"attribute": "学业", "scope": None, "quote": STUDENT, "relations": [*FOUR, invented]},
            }
        ]
    }
    model = ScriptedModel(script=[json.dumps(answer, ensure_ascii=False)])
    with SupervisorMemory(Settings(embedding_model="none"), llm=model) as memory:
        done = memory.reflect(STUDENT, user_id="ada", specialists=["personal", "relations"])
        [kept] = [memory.get(each.id) for each in done.results]
        assert kept.metadata["relations"] == FOUR
        assert four(memory) == FOUR
    assert len(model.prompts) == 1
    assert 'Give each operation "relations", too' in model.prompts[0]
