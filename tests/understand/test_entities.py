"""What a text names, by its form, in both languages; and what two texts both name."""

import time

from supervisor_memory.understand.entities import LONGEST, MOST, entities, joining_terms, named_terms, shared
from tests.cases import every_case


@every_case(
    ("text", "names"),
    [
        ("The rows of fct_baskets come out of basket_loader.", {"fct_baskets", "basket_loader"}),
        ("Our contact at Tagwise is Dolores Pike.", {"Tagwise", "Dolores Pike"}),
        ("The Lantern squad has six people.", {"Lantern"}),
        ("She moved to the University of Ghent in May.", {"University of Ghent"}),
        ("prices.xlsx is picked up by price_ingest.", {"prices.xlsx", "price_ingest"}),
        ("「冰眼」是深圳供的货。", {"冰眼"}),
        ("字段 real_wt 在表 ods_weigh 里。", {"real_wt", "ods_weigh"}),
        ("他的导师是张教授。", {"张教授"}),
        ("他在哪个部门，在什么公司，归谁管？", set()),
        ("这家公司的成本中心", {"成本中心"}),
        ("nothing here has a name", set()),
    ],
)
def test_a_text_names_things_by_their_form(text: str, names: set[str]) -> None:
    assert {entity.name for entity in entities(text)} == names


@every_case(
    ("text", "kinds"),
    [
        (
            "select a from sales.orders join dim_store on b = c",
            {"sales.orders": "table", "dim_store": "table"},
        ),
        ("see reports/2026/may.pdf", {"reports/2026/may.pdf": "file"}),
        ("he works with Dr Jane Hall in Data Science", {"Dr Jane Hall": "person", "Data Science": "field"}),
        ("我在北京大学读计算机科学", {"北京大学": "organization", "计算机科学": "field"}),
    ],
)
def test_a_name_has_a_kind_where_its_form_tells_one(text: str, kinds: dict[str, str]) -> None:
    told = {entity.name: entity.kind for entity in entities(text)}
    assert kinds.items() <= told.items()


def test_a_name_counts_once_whatever_its_case() -> None:
    assert [entity.key for entity in entities("ask Ada Low, and ask ADA LOW again")] == ["ada low"]


def test_the_terms_of_names_are_told_from_other_words() -> None:
    assert named_terms("the rows come out of basket_loader") == {"basket_loader"}
    assert named_terms("the rows come each night out of hushbook") == {"hushbook"}


@every_case(
    ("one", "other", "name"),
    [
        ("Basket Health is built on fct_baskets.", "fct_baskets has 90 million rows.", "fct_baskets"),
        ("写周一简报的是贺兰。", "贺兰的直属上级是宗政。", "贺兰"),
        ("the ski forecast needs the weather feed", "The weather feed is supplied by Cumulo", "weather feed"),
        ("one thing", "something else", ""),
    ],
)
def test_two_texts_share_the_longest_name_or_the_longest_run(one: str, other: str, name: str) -> None:
    assert name in shared(one, other, without=frozenset(("the",)))


def test_what_does_not_count_is_not_shared() -> None:
    assert shared("the crew of Atlas", "the desk of Atlas", without=frozenset(("atlas", "of", "the"))) == ""


@every_case("text", ["A" * 10_240, "Aa Bb " * 10_000, "中文大学" * 15_000, "a_b." * 16_000, "「x" * 20_000])
def test_a_name_of_ten_kilobytes_is_none_and_takes_no_time(text: str) -> None:
    begun = time.process_time()
    found = entities(text)
    assert len(found) <= MOST
    assert all(len(entity.name) <= LONGEST for entity in found)
    assert time.process_time() - begun < 1.0


@every_case("word", ["开会", "报销", "火锅", "请假", "午饭", "周报", "退货", "发票"])
def test_an_everyday_chinese_word_joins_no_facts(word: str) -> None:
    assert joining_terms(word) == frozenset()


@every_case("name", ["李敏", "倪涛", "苍鹭", "鸿雁", "𠮷田"])
def test_a_chinese_name_joins_facts(name: str) -> None:
    assert name in joining_terms(f"{name}，来了")
