"""Whom and what a text names."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.understand.names import identifier_match, identifiers, kin, named_people
from tests.cases import every_case

TEAM = ("Eleanor", "Natalie", "王芳", "李小明", "José", "Will", "May")


@every_case(
    ("query", "named"),
    [
        ("What did Eleanor's dog do?", {"Eleanor"}),
        ("what does eleanor like, and NATALIE?", {"Eleanor", "Natalie"}),
        ("问Eleanor的生日", {"Eleanor"}),
        ("王芳说了什么", {"王芳"}),
        ("小明的生日是哪天", {"李小明"}),
        ("José’s trip", {"José"}),
        ("What did Nat paint?", {"Natalie"}),
        ("What does Will think?", {"Will"}),
        ("May's trip", {"May"}),
        ("eleanors and a nataliesque thing", set()),
        ("Will you tell me what he may do?", set()),
        ("Who was it?", set()),
    ],
)
def test_a_question_names_people_by_whole_words(query: str, named: set[str]) -> None:
    assert named_people(query, TEAM) == named


def test_roles_are_not_people() -> None:
    assert (
        named_people("the user asked the assistant, 用户问", ["user", "assistant", "用户", "", " "])
        == frozenset()
    )


def test_one_part_of_a_name_is_enough_when_only_one_has_it() -> None:
    team = ["Eleanor Smith", "John Smith", "Dr. Ann Li"]
    assert named_people("What did john say to Smith?", team) == {"John Smith"}
    assert named_people("the doctor, Dr. No", team) == frozenset()


def test_a_nickname_of_two_people_names_neither() -> None:
    assert named_people("What about Ann?", ["Anna", "Annabel"]) == frozenset()
    assert named_people("What about Ann?", ["Ann", "Annabel"]) == {"Ann"}


def test_months_and_question_words_are_no_nicknames() -> None:
    assert named_people("The trip of Mar 5 And How", ["Maria", "Theodore", "Andrew", "Howard"]) == frozenset()


@every_case(
    ("text", "found"),
    [
        ("the arr_delay of flights.dep_delay", {"arr_delay", "flights.dep_delay"}),
        (
            "open reports/q3.csv, /etc/hosts and C:\\a\\b.txt",
            {"reports/q3.csv", "/etc/hosts", "c:\\a\\b.txt"},
        ),
        ('the "On-time  rate"', {"on-time rate"}),
        ("「准点率」和《航班手册》", {"准点率", "航班手册"}),
        ("the column `Dep Delay`.", {"dep delay"}),
        ("看表arr_delay的平均值", {"arr_delay"}),
        ("camelCase in LangGraph", {"camelcase", "langgraph"}),
        ("TICKET-12 at v2.1 or 1.2.3", {"ticket-12", "v2.1", "1.2.3"}),
        ("commit 5f3a9c2d", {"5f3a9c2d"}),
        ("id 123e4567-e89b-12d3-a456-426614174000", {"123e4567-e89b-12d3-a456-426614174000"}),
        ("mail Me@Example.com, see https://a.b/c?d=1.", {"me@example.com", "https://a.b/c?d=1"}),
        ("carrier B6, flight UA1545", {"b6", "ua1545"}),
        ("and/or he/she 24/7 km/h N/A i.e. U.S. done.Then", set()),
        ("Q3, H1, FY2023, 2023-05-07, 7/5/2023, 3.11 and 42", set()),
        ("deadbeef 1234567 don't stop, it's John's", set()),
    ],
)
def test_identifiers_are_what_is_called_by_an_exact_name(text: str, found: set[str]) -> None:
    assert identifiers(text) == found


def test_the_match_is_the_share_of_the_identifiers_of_the_question() -> None:
    record = identifiers("flights.dep_delay is in reports/q3.csv")
    assert identifier_match(identifiers("flights.dep_delay"), record) == 1.0
    assert identifier_match(identifiers("flights.dep_delay or arr_delay"), record) == 0.5
    assert identifier_match(identifiers("other words"), record) == 0.0


def test_a_column_without_its_table_nearly_matches() -> None:
    assert identifier_match({"dep_delay"}, {"flights.dep_delay"}) == 0.8
    assert identifier_match({"reports/q3.csv"}, {"q3.csv"}) == 0.8
    assert identifier_match({"orders.id"}, {"flights.id"}) == 0.0


PIECES = st.sampled_from([*"aB1_./-@#`'\"《》「」 \\:v芳", "Will", "Nat"])


@given(text=st.text() | st.lists(PIECES).map("".join), people=st.lists(st.text(max_size=12), max_size=5))
def test_nothing_raises(text: str, people: list[str]) -> None:
    assert named_people(text, [*people, *TEAM]) <= {*people, *TEAM}
    found = identifiers(text)
    assert all(each == each.strip() and len(each) > 1 for each in found)
    assert identifier_match(found, found) == (1.0 if found else 0.0)


@every_case(
    "piece",
    [
        "a",
        "1",
        "_",
        "a_",
        "a.",
        "a/",
        "/",
        "`",
        "'a ",
        "f1",
        "@",
        "a@",
        "A-",
        "aB",
        "1.",
        "「",
        "-",
        "Ab",
        " ",
        "\\a",
    ],
)
def test_a_hundred_kilobytes_of_anything_come_to_an_end(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert isinstance(identifiers(text), frozenset)
    assert named_people(text, ["Eleanor", "A B"]) == frozenset()


# --- kin


@every_case(
    ("one", "other"),
    [
        ("mothers", "mum"),
        ("Dad", "father"),
        ("grandpa", "grandfathers"),
        ("爸爸", "父亲"),
        ("妈妈", "我妈"),
        ("姥姥", "外婆"),
        ("丈母娘", "岳母"),
        ("男朋友", "男友"),
    ],
)
def test_the_words_for_one_relation_mean_the_same(one: str, other: str) -> None:
    assert kin(terms(one)[0]) == kin(terms(other)[0]) >= {terms(one)[0], terms(other)[0]}


@every_case(
    ("one", "other"),
    [("mother", "father"), ("mother", "aunt"), ("奶奶", "外婆"), ("哥哥", "弟弟"), ("岳母", "婆婆")],
)
def test_the_words_for_two_relations_stay_two(one: str, other: str) -> None:
    assert kin(terms(one)[0]).isdisjoint(kin(terms(other)[0]))


def test_no_word_stands_for_two_relations() -> None:
    rows = [set(row.split()) for row in lexicon("names").listed("kin")]
    firsts = [{terms(word)[0] for word in row} for row in rows]
    assert sum(map(len, firsts)) == len(set().union(*firsts))
    assert all(kin(first) >= row for row in firsts for first in row)
    assert kin("table") == kin("朋友") == frozenset()
