"""A note of which no record surely answers tells two records; others are told as they were found."""

from collections.abc import Sequence
from dataclasses import replace

from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Hit, Hits, Joint, Query, Scope, Source
from supervisor_memory.stages.post_retrieval.unanswered import FEW, keep_few
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

QUESTION = "Who translated the handbook into verse?"


def found(text: str, score: float, **parts: float) -> Hit:
    return Hit(record(text), score, {"match": score, "relevance": score, **parts})


RESEMBLE = [
    found("The handbook is printed in May", 0.7, sim=0.8),
    found("Anna translated a poem", 0.6, sim=0.6),
    found("Bo speaks Danish", 0.5, sim=0.5),
    found("The canteen has a menu", 0.4, sim=0.4),
]


def told(hits: Sequence[Hit], question: str = QUESTION, **turn: object) -> Sequence[Hit]:
    query = Query(question, Filter("alice"), terms(question))
    plan = Recalling(Turn(question, Scope("alice"), **turn), query=query, hits=Hits(tuple(hits)))  # type: ignore[arg-type]
    return keep_few(plan, ports().read_store()).hits.items


def test_where_records_only_resemble_the_question_the_best_two_are_told() -> None:
    unlike = [replace(hit, record=record(f"something else {n}")) for n, hit in enumerate(RESEMBLE)]
    assert told(unlike) == tuple(unlike[:FEW])


def test_the_second_is_what_the_best_leads_to_where_that_is_no_less_relevant() -> None:
    best, *others = (replace(hit, record=record(f"something else {n}")) for n, hit in enumerate(RESEMBLE))
    way = replace(found("it leads here", 0.3), path=(Joint(best.record.id, "x"),), found="joined")
    near = replace(way, parts={"relevance": 0.65})
    assert told([best, *others, near]) == (best, near)
    far = replace(way, parts={"relevance": 0.45})
    assert told([best, *others, far]) == (best, others[0])


@every_case(
    ("question", "way"),
    [
        (
            "Who is admin of the system where Lapsed Hikers are mastered?",
            [
                "Lapsed Hikers is cut from crm_contacts",
                "crm_contacts sits in Brightdesk",
                "The admin for Brightdesk is Siobhan Keane",
            ],
        ),
        (
            "缺货雷达的那张表归谁维护？",
            [
                "缺货雷达取自 dws_stock_day",
                "dws_stock_day 由 stock_roll 写入",
                "stock_roll 归谁维护都写在首页",
            ],
        ),
    ],
)
def test_a_way_whose_records_hold_the_words_between_them_is_told_and_not_cut_in_two(
    question: str, way: list[str]
) -> None:
    first, between, last = way
    others = [found(f"something else {n}", 0.5 - n / 10, sim=0.4) for n in range(3)]
    hits = [found(first, 0.7, sim=0.5), *others, found(last, 0.15, sim=0.3)]
    joined = replace(found(between, 0.1, walk=0.3), path=(Joint(hits[0].record.id, "x"),), found="joined")
    assert told([*hits, joined], question) == (hits[0], hits[-1], joined)
    apart = found("Nobody knows", 0.1)
    assert told([*hits, apart], question) == tuple(hits[:FEW])


@every_case(
    "why",
    [
        "one record is alike enough and has words of it",
        "three records have its words between them",
        "a message is quoted",
        "a turn is told word for word",
        "there are no vectors",
    ],
)
def test_all_that_was_found_is_told_where(why: str) -> None:
    hits = [replace(hit, record=record(f"something else {n}")) for n, hit in enumerate(RESEMBLE)]
    if why == "one record is alike enough and has words of it":
        hits[0] = found("The handbook is printed in May", 0.7, sim=1.0)
    if why == "three records have its words between them":
        hits = RESEMBLE
    if why == "a message is quoted":
        message = record("said", layer="history", source=Source(session_id="s1"))
        hits.append(Hit(message, 0.3, excerpt="Ilse has translated it"))
    if why == "a turn is told word for word":
        hits.append(Hit(record("said", layer="history", source=Source(speaker="Bo")), 0.3))
    if why == "there are no vectors":
        hits = [replace(hit, parts={"match": hit.score, "relevance": hit.score}) for hit in hits]
    assert told(hits) == tuple(hits)


@every_case(
    ("question", "unknown", "known"),
    [
        ("Who sponsors Project Otter?", "Project Badger has Bo", "Project Otter has Bo"),
        ("At what hour is dim_seats loaded?", "dim_rows is loaded at six", "dim_seats is loaded at six"),
        ("Which hours do the rows of dim_seats have?", "dim_rows has hours", "dim_seats has hours"),
        (
            "When did tide_seats move to Postgres?",
            "dim_rows moved to Postgres",
            "tide_seats moved to Postgres",
        ),
        ("Who moved Weasel to Superset?", "Stoat was moved to Superset", "Weasel was moved to Superset"),
        ("「萤火」小组每天几点开站会？", "「拓荒」小组每天九点开站会", "「萤火」小组每天九点开站会"),
        ("Who looks after Weasel?", "Stoat is looked after by Bo", "Weasel is looked after by Bo"),
        ("who looks after the plover feed", "The tide feed is Bo's", "The plover feed is Bo's"),
        ("谁负责鸿雁平台？", "苍鹭平台由宁夏负责", "鸿雁平台由宁夏负责"),
        ("鸿雁是谁在维护？", "苍鹭由宁夏维护", "鸿雁由宁夏维护"),
        ("跟鸿雁短信的合同谁签？", "苍鹭通信的合同由宁夏签", "鸿雁短信的合同由宁夏签"),
    ],
)
def test_two_records_are_told_where_no_candidate_knows_what_the_question_names(
    question: str, unknown: str, known: str
) -> None:
    others = [found(f"something else {n}", 0.6 - n / 10, sim=0.6) for n in range(3)]
    hits = [found(unknown, 0.9, sim=1.0), *others]
    assert told(hits, question) == tuple(hits[:FEW])
    hits = [found(known, 0.9, sim=1.0), *others]
    assert told(hits, question) == tuple(hits)


def test_a_way_is_told_beside_the_two_where_one_word_may_be_a_name() -> None:
    best, second = found("The tyres are at Pohl's", 0.7, sim=1.0), found("something else", 0.6, sim=0.5)
    led_to = found("On a Saturday Pohl's closes at noon", 0.1, sim=0.5)
    hits = [best, second, found("something different", 0.4, sim=0.4), led_to]
    assert told(hits, "Where do I get tyres for the Volvo on a Saturday?") == (best, second, led_to)
    assert told(hits, "Where do I get tyres for Old Lightning on a Saturday?") == (best, second)


@every_case(
    ("question", "record"),
    [
        ("Who maintains fct_ordres?", "Bo maintains fct_orders"),
        ("Who maintains Bright Axle?", "Bo maintains BrightAxle"),
        ("Who maintains the Gearbox Wll?", "Bo maintains the Gearbox Wall"),
        ("Who maintains the Wndlass?", "Bo maintains the Windlass"),
        ("who maintains the widnlass", "Bo maintains the windlass"),
        ("Whose are the Plovers?", "Bo's job is Plover"),
        ("When is Kathy's birthday?", "Kathi's birthday is on 9 October"),
        ("What can't Tomás eat?", "Tomas eats no bread"),
        ("Which piece of Chaikovsky do I like?", "I like the serenade of Tchaikovsky"),
        ("Who maintains Kestrel?", "Bo maintains kestrel-2"),
    ],
)
def test_a_name_with_a_slip_or_spelled_in_another_way_is_known(question: str, record: str) -> None:
    others = [found(f"something else {n}", 0.6 - n / 10, sim=0.6) for n in range(3)]
    hits = [found(record, 0.9, sim=1.0), *others]
    assert told(hits, question) == tuple(hits)


def test_another_number_or_another_word_is_no_slip() -> None:
    others = [found(f"some other thing {n}", 0.6 - n / 10, sim=0.6) for n in range(3)]
    hits = [found("depot_7 is closed", 0.9, sim=1.0), *others]
    assert told(hits, "Is depot_9 closed?") == tuple(hits[:FEW])
    assert told(hits, "Who leads Otter?") == tuple(hits[:FEW])


def test_a_thing_beside_one_that_is_known_takes_nothing() -> None:
    hits = [found("Bo Lund maintains fct_sales", 0.9, sim=1.0), *RESEMBLE]
    assert told(hits, "Does Bo Lund know who leads Project Otter?") == tuple(hits)
    hits = [found("苍鹭在仓储部", 0.9, sim=1.0), *RESEMBLE]
    assert told(hits, "苍鹭在哪个部门？") == tuple(hits)  # a word that asks is no name


@every_case(
    "question",
    [
        "Hi Claude, who looks after the handbook?",
        "Who looks after the handbook? Thanks, Adam",
        "Which KPI does the handbook tell of?",
        "Can you tell Ottoline who looks after the handbook?",
        "Tell Ottoline: who looks after the handbook?",
        "Who looks after the handbook, for my note to Siobhan?",
        "It's Saturday, who looks after the handbook?",
        "Who rewrote the handbook?",
        "Where is the hanbdook kept?",
        "Draft a letter about the handbook to Barnaby.",
        "李先生的手册归谁管？",
        "王经理问：手册归谁管？",
        "告诉周岚，手册归谁管？",
        "我想改手册，要谁批？",
    ],
)
def test_whoever_asks_is_told_or_is_told_of_and_a_verb_are_no_names(question: str) -> None:
    others = [found(f"something else {n}", 0.6 - n / 10, sim=0.6) for n in range(3)]
    hits = [found("The handbook 手册 is looked after by Bo", 0.9, sim=1.0), *others]
    assert told(hits, question) == tuple(hits)


def test_a_question_for_several_things_a_search_and_a_note_without_threshold_are_left_alone() -> None:
    hits = tuple(replace(hit, record=record(f"something else {n}")) for n, hit in enumerate(RESEMBLE))
    assert told(hits, "Which foods must be avoided?") == hits
    assert told(hits, "家里人有哪些忌口") == hits
    assert told(hits, purpose="hits") == hits
    assert told(hits, threshold=0.0) == hits


def test_what_stands_and_what_an_operator_added_is_beside_the_two() -> None:
    hits = [replace(hit, record=record(f"something else {n}")) for n, hit in enumerate(RESEMBLE)]
    standing = found("use tables", 0.2, standing=1.0)
    guideline = replace(found("call it once", 0.1), found="guideline")
    assert told([standing, *hits, guideline]) == (standing, *hits[:FEW], guideline)
