"""Texts that look alike and are two facts, and announced changes that are one."""

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case


def after(*said: str) -> tuple[list[str], list[str]]:
    """What became of each text that is written, and what is known in the end; without vectors."""
    memory = SupervisorMemory(Settings(embedding_model="none"), clock=FixedClock())
    became: list[str] = [
        memory.write(text, user_id="ada", created_at=float(day * 86_400)).status
        for day, text in enumerate(said, start=1)
    ]
    return became, sorted(record.content for record in memory.get_all(user_id="ada"))


@every_case(
    ("one", "other"),
    [
        (
            "Trucks at dock C3 are unloaded within 40 minutes.",
            "Trucks at dock F9 are unloaded within 40 minutes.",
        ),
        ("Samples of bay K2 are measured in 20 minutes.", "Samples of bay M5 are measured in 20 minutes."),
        ("高一五班下午打扫操场。", "高一六班下午打扫操场。"),
        ("三队早上六点出车。", "四队早上六点出车。"),
    ],
)
def test_what_is_said_of_one_label_does_not_take_the_place_of_another(one: str, other: str) -> None:
    assert after(one, other) == (["added", "added"], sorted((one, other)))


@every_case(
    ("whole", "part"),
    [
        ("In 2019 there were 8,204 visits to the tower.", "The tower had 310 visits in March 2019."),
        ("The tower had 310 visits in March 2019.", "In 2019 there were 8,204 visits to the tower."),
        ("灯塔 2019 年接待游客 8204 人。", "灯塔 2019 年 3 月接待游客 310 人。"),
    ],
)
def test_the_figure_of_a_month_does_not_take_the_place_of_the_year_s(whole: str, part: str) -> None:
    settings = Settings(embedding_model="all-MiniLM-L6-v2")
    with SupervisorMemory(settings, clock=FixedClock()) as memory:
        statuses = [memory.write(text, user_id="ada", kind="domain-facts").status for text in (whole, part)]
    assert statuses == ["added", "added"]


@every_case(
    ("one", "other"),
    [
        ("停车位每天收 30 元。", "停车位每周收 30 元。"),
        ("Lockers cost 5 euros a week.", "Lockers cost 5 euros a month."),
        ("药膏在洗澡前涂。", "药膏在洗澡后涂。"),
        ("车从南门左边进入。", "车从南门右边进入。"),
    ],
)
def test_another_rate_and_another_side_are_two_things(one: str, other: str) -> None:
    assert after(one, other) == (["added", "added"], sorted((one, other)))


@every_case(
    ("one", "other"),
    [
        ("The ferry carries sheep to the island.", "Sheep of the neighbour have no ferry pass."),
        ("The archive has two reading rooms.", "The archive lends microfilms."),
        ("博物馆有两个展厅。", "博物馆出售明信片。"),
        ("Bees are kept behind the barn.", "Bees need clover in May."),
        ("蜜蜂养在谷仓后面。", "蜜蜂五月需要三叶草。"),
    ],
)
def test_two_facts_of_one_subject_are_not_joined(one: str, other: str) -> None:
    assert after(one, other) == (["added", "added"], sorted((one, other)))


@every_case(
    ("known", "said"),
    [
        ("The bakery orders flour on Mondays.", "From now on, the bakery orders flour on Wednesdays."),
        ("Passwords expire every quarter.", "Passwords expire every month from now on."),
        ("果园每周三采摘。", "以后果园改在每周六采摘。"),
        ("Our fee for a divorce is 900 euros.", "Our fee for a divorce was lowered to 750 euros."),
        ("Our translator is Lena Sommer.", "Our translator is Pavel Horak since March."),
        ("The choir meets in room 4.", "The choir meets in room 9 now."),
        (
            "The bonus of new employees is 300 euros.",
            "The bonus of new employees has been raised to 400 euros.",
        ),
        ("高二化学由孙老师教。", "高二化学改由钱老师教。"),
        ("舞蹈课用录音伴奏。", "舞蹈课不用录音伴奏。"),
    ],
)
def test_a_change_that_is_told_takes_the_place_of_what_was_known(known: str, said: str) -> None:
    assert after(known, said) == (["added", "updated"], [said])


@every_case(
    ("known", "said"),
    [
        ("Address me by my surname.", "You needn't call me by my surname any longer."),
        ("Call me by my nickname.", "Forget that I asked you to address me by my nickname."),
    ],
)
def test_a_form_of_address_is_taken_back_by_another_word_for_it(known: str, said: str) -> None:
    assert after(known, said) == (["added", "updated"], [])


def test_a_change_of_something_else_leaves_both_kinds_alone() -> None:
    said = ("The warehouse counts its stock on Mondays.", "From now on, send me the stock list on Fridays.")
    assert after(*said) == (["added", "added"], sorted(said))


@every_case(
    ("one", "other"),
    [
        ("Karin trains on lane 2.", "Moritz now trains on lane 5."),
        ("The kennel buys straw on Mondays.", "From now on, the kennel buys bones on Saturdays."),
        ("高一地理由何老师教。", "高一历史改由郑老师教。"),
        ("Our tailor is Ivo Brand.", "Our optician is now Rita Kern."),
    ],
)
def test_a_change_that_is_told_of_something_else_is_added(one: str, other: str) -> None:
    assert after(one, other) == (["added", "added"], sorted((one, other)))
