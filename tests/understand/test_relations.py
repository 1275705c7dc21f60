"""What a text tells of how things are related, and what SQL is made of."""

import time

from supervisor_memory.understand.lineage import lineage_of
from supervisor_memory.understand.relations import relations
from tests.cases import every_case

ADVISED = (
    ("李明", "studies_at", "北京大学"),
    ("李明", "studies", "计算机科学"),
    ("李明", "advised_by", "张教授"),
    ("张教授", "expert_in", "人工智能"),
)


def told(text: str) -> set[tuple[str, str, str]]:
    return {(each.source, each.relationship, each.destination) for each in relations(text)}


@every_case(
    "text",
    [
        "李明在北京大学学习计算机科学，他的导师是张教授，张教授是人工智能领域的专家。",
        "李明是北京大学的学生，专业是计算机科学。他的导师是张教授，张教授是人工智能方面的专家。",
    ],
)
def test_the_four_relations_of_a_student_are_read(text: str) -> None:
    assert told(text) == set(ADVISED)


def test_english_says_the_same_with_a_pronoun_and_a_clause_of_its_own() -> None:
    text = (
        "Rosa Lund studies geology at Uppsala University. Her adviser is Professor Ek, "
        "who is an expert in ice cores."
    )
    assert told(text) == {
        ("Rosa Lund", "studies_at", "Uppsala University"),
        ("Rosa Lund", "studies", "geology"),
        ("Rosa Lund", "advised_by", "Professor Ek"),
        ("Professor Ek", "expert_in", "ice cores"),
    }


@every_case(
    ("text", "relation"),
    [
        ("The harbour board, also called dash_40, is slow.", ("harbour board", "same_as", "dash_40")),
        ("The harbour board (dash_40) is slow.", ("harbour board", "same_as", "dash_40")),
        ("港口看板也叫 dash_40。", ("港口看板", "same_as", "dash_40")),
        ("港口看板（dash_40）很慢。", ("港口看板", "same_as", "dash_40")),
        ("The rows of fct_ships come from the job tide_job.", ("fct_ships", "reads_from", "tide_job")),
        ("fct_ships 由作业 tide_job 写入。", ("fct_ships", "filled_by", "tide_job")),
        ("Nils Berg maintains tide_job.", ("tide_job", "maintained_by", "Nils Berg")),
        ("tide_job 由倪伟维护。", ("tide_job", "maintained_by", "倪伟")),
        ("Nils Berg's stand-in is Ana Cruz.", ("Nils Berg", "stand_in", "Ana Cruz")),
        ("倪伟的替班是安然。", ("倪伟", "stand_in", "安然")),
        ("The harbour board was painted by Ana Cruz.", ("harbour board", "painted_by", "Ana Cruz")),
    ],
)  # fmt: skip
def test_a_relation_is_read(text: str, relation: tuple[str, str, str]) -> None:
    assert relation in told(text)


@every_case(
    ("text", "relation"),
    [
        ("Lena Vogt (not Ana Cruz) maintains pay_job.", ("pay_job", "maintained_by", "Lena Vogt")),
        ("莉娜（不是王芳）负责 pay_job。", ("pay_job", "maintained_by", "莉娜")),
    ],
)
def test_what_is_denied_in_brackets_is_no_other_name(text: str, relation: tuple[str, str, str]) -> None:
    assert told(text) == {relation}


@every_case(
    "text",
    [
        "SELECT a FROM t",
        "What is it called?",
        "It was decided by us.",
        "The meeting is at nine.",
        "我们是明天去的。",
        "(((" * 3_000,
    ],
)
def test_what_names_no_two_things_tells_no_relation(text: str) -> None:
    assert relations(text) == ()


@every_case("piece", ["is ", "的是", "called by a ", "在大学的", "reads from, ", "「"])
def test_a_hostile_text_takes_no_longer_than_a_long_one(piece: str) -> None:
    begun = time.perf_counter()
    relations(piece * (64_000 // len(piece)))
    assert time.perf_counter() - begun < 1.5


def test_a_query_is_made_of_columns_through_its_inner_queries() -> None:
    sql = """
    WITH per_port AS (SELECT port, SUM(load) AS total FROM main.trips WHERE day > 3 GROUP BY port)
    SELECT p.port, p.total, c.name FROM per_port AS p JOIN ports AS c ON c.id = p.port
    """
    found = lineage_of(sql)
    assert found.columns == {
        "main.trips.port",
        "main.trips.load",
        "main.trips.day",
        "ports.id",
        "ports.name",
    }
    assert {each.name: (sorted(each.columns), each.is_metric) for each in found.outputs} == {
        "port": (["main.trips.port"], False),
        "total": (["main.trips.load"], True),
        "name": (["ports.name"], False),
    }


@every_case("sql", ["SELECT", "no SQL", "SELECT * FROM t", ""])
def test_what_cannot_be_told_of_a_query_is_left_out(sql: str) -> None:
    assert not lineage_of(sql).columns
