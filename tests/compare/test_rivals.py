"""Facts that share nearly all their words: of other people, of other things, and new values of one thing."""

from collections.abc import Iterator
from itertools import count, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.compare.apart import apart
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.slots import plain
from supervisor_memory.model.records import Kind, content_hash
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.understand.subject import of_another, people, same_attribute, stated
from tests.cases import every_case

USERS = count()
KINDS: tuple[Kind, ...] = ("user-profile", "domain-facts")


@pytest.fixture(scope="module", params=["none", "all-MiniLM-L6-v2"])
def memory(request: pytest.FixtureRequest) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model=request.param), clock=FixedClock()) as opened:
        yield opened


def written(memory: SupervisorMemory, first: str, second: str, kind: Kind) -> tuple[str, list[str]]:
    """What became of the second text, and all that is known then."""
    user = f"user {next(USERS)}"
    memory.write(first, user_id=user, kind=kind)
    result = memory.write(second, user_id=user, kind=kind)
    return result.status, sorted(record.content for record in memory.get_all(user_id=user))


BOTH_HOLD = [
    # one can have, do and know several things
    ("I know how to weld.", "I know how to solder."),
    ("I collect stamps.", "I collect coins."),
    ("I take vitamin D.", "I take iron tablets."),
    ("I have a mortgage with ING.", "I have a savings plan with ING."),
    ("My hobby is pottery.", "My hobby is archery."),
    ("I watch series in Danish.", "I read novels in Dutch."),
    ("Keep emails brief.", "Keep reports detailed."),
    ("我会开叉车。", "我会开吊车。"),
    ("我养了一只兔子。", "我养了一只乌龟。"),
    ("我订阅了财新。", "我订阅了三联。"),
    ("我们支持信用卡付款。", "我们支持支付宝付款。"),
    # other people
    ("My grandmother takes blood thinners.", "I take blood thinners."),
    ("The night nurse has a key to the pharmacy.", "I have a key to the pharmacy."),
    ("Our landlord speaks Polish.", "I speak Polish."),
    ("Priya leaves at four on Fridays.", "I leave at four on Fridays."),
    ("The team wants charts in green.", "I want charts in green."),
    ("My physiotherapist wants to see me weekly.", "My dietician wants to see me weekly."),
    ("My daughter's school starts at 8.", "My son's school starts at 8."),
    ("我奶奶有糖尿病。", "我有糖尿病。"),
    ("我室友晚上不喝咖啡。", "我晚上不喝咖啡。"),
    ("李主管下午不开会。", "我下午不开会。"),
    ("财务部只收电子发票。", "我只收电子发票。"),
    ("我老公周末加班。", "我周末加班。"),
    # other things of one kind
    ("192.168.1.4 hosts the wiki.", "192.168.1.40 hosts the wiki."),
    ("Node db-3 holds the archive.", "Node db-4 holds the archive."),
    ("`maxRows` limits the export.", "`maxrows` limits the export."),
    ("userId is the join column.", "userid is the join column."),
    ("车间三生产轴承。", "车间五生产轴承。"),
    ("第三季度招聘五人。", "第四季度招聘五人。"),
    ("On Mondays the canteen serves fish.", "On Tuesdays the canteen serves fish."),
    ("周一食堂供应鱼。", "周二食堂供应鱼。"),
    # said of fewer, or of the other side
    ("Only the CFO may sign contracts.", "The CFO may sign contracts."),
    ("Unless it rains, training is outdoors.", "Training is outdoors."),
    ("除周日外每天营业。", "每天营业。"),
    ("The maximum speed of the belt is 3 m/s.", "The minimum speed of the belt is 3 m/s."),
    ("Weekday tickets cost 12 euros.", "Weekend tickets cost 15 euros."),
    ("The old contract ends in May.", "The new contract ends in June."),
    ("Planned output is 500 units.", "Actual output is 430 units."),
    ("进口货物由海关抽检。", "出口货物由海关抽检。"),
    ("应收账款每月核对。", "应付账款每月核对。"),
    ("白班有八个人。", "夜班有五个人。"),
    ("含早餐的房价是 400 元。", "不含早餐的房价是 350 元。"),
    ("I dislike anchovies on toast.", "I like radishes on toast."),
    ("Yield is calculated as good parts by all parts.", "Uptime is calculated as run hours by all hours."),
    ("上座率等于售出座位除以座位总数。", "退票率等于退票张数除以售出张数。"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("one", "other"), BOTH_HOLD)
def test_what_may_hold_beside_another_is_kept_beside_it(
    memory: SupervisorMemory, one: str, other: str, kind: Kind
) -> None:
    for first, second in permutations((one, other)):
        assert written(memory, first, second, kind) == ("added", sorted((one, other)))


ANOTHER_VALUE = [
    ("The freezer runs at -18 degrees.", "The freezer runs at 18 degrees."),
    ("The pump delivers ¼ litre per stroke.", "The pump delivers ¾ litre per stroke."),
    ("The clinic closes at 6 a.m.", "The clinic closes at 6 p.m."),
    ("The filter is changed every other month.", "The filter is changed every month."),
    ("气温是零下十度。", "气温是十度。"),
    ("值班从早上七点开始。", "值班从晚上七点开始。"),
    ("每隔一天浇水。", "每天浇水。"),
    ("仅限会员参加品酒会。", "会员参加品酒会。"),
    ("The password hint is `Qz7Lm`.", "The password hint is `qz7lm`."),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("one", "other"), ANOTHER_VALUE)
def test_a_value_that_differs_in_a_sign_is_not_the_same(
    memory: SupervisorMemory, one: str, other: str, kind: Kind
) -> None:
    for first, second in permutations((one, other)):
        status, known = written(memory, first, second, kind)
        assert (status, known) in [("added", sorted((one, other))), ("updated", [second])]


NEW_VALUE = [
    ("We live in Turku.", "We live in Oulu."),
    ("My supervisor is Ingrid.", "My supervisor is Pavel."),
    ("My brother lives in Graz.", "My brother lives in Linz."),
    ("I am based in Porto.", "I am based in Faro now."),
    ("Our base currency is SEK.", "Our base currency is NOK."),
    ("Maria works for Philips.", "Maria works for ASML."),
    ("My mobile number is 0470 11 22 33.", "My mobile number is 0470 99 88 77."),
    ("I can eat gluten.", "I cannot eat gluten."),
    ("The limit is 40.", "The limit is 55."),
    ("我搬到昆明了。", "我搬到大理了。"),
    ("我的主管是赵敏。", "我的主管现在是钱斌。"),
    ("我们的总部在柏林。", "我们的总部在慕尼黑。"),
    ("我的邮箱是 li@a.cn", "我的邮箱改成 li@b.cn"),
    ("我的职位是产品经理。", "我的职位是运营总监。"),
    ("我对青霉素过敏。", "我对青霉素不过敏了。"),
    ("库存上限是 300 箱。", "库存上限是 420 箱。"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("known", "said"), NEW_VALUE)
def test_what_there_is_one_of_is_replaced(
    memory: SupervisorMemory, known: str, said: str, kind: Kind
) -> None:
    assert written(memory, known, said, kind) == ("updated", [said])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("The shop opens at 5 pm.", "The shop opens at 17:00."),
        ("The tank holds ½ ton.", "The tank holds 0.5 tons."),
        ("Peanuts make my son ill.", "My son gets ill from peanuts."),
        ("The team meets on Friday at 3 pm.", "On Friday at 15:00 the team meets."),
    ],
)
def test_one_thing_in_another_spelling_is_one_record(
    memory: SupervisorMemory, known: str, said: str, kind: Kind
) -> None:
    status, left = written(memory, known, said, kind)
    assert status in ("merged", "skipped")
    assert len(left) == 1


WHO = ["My aunt", "Our accountant", "My flatmate", "The sales director", "Their plumber's nurse"]
IS = [" is afraid of heights", " prefers the window seat", " never eats after nine", " drives a van"]
WHO_ZH = ["我外公", "我的邻居", "咱们的会计", "我表妹", "王医生"]
IS_ZH = ["怕高", "喜欢靠窗的座位", "九点以后不吃东西", "开面包车上班"]


@every_case(
    ("one", "other"),
    [("Sales fell in April", "The train was late in April"), ("五月客流增长", "五月雨水很多")],
)
def test_without_vectors_a_date_in_common_makes_no_two_texts_one(one: str, other: str) -> None:
    with SupervisorMemory(Settings(embedding_model="none"), clock=FixedClock()) as memory:
        assert written(memory, one, other, "domain-facts") == ("added", sorted((one, other)))


@given(st.sampled_from([*product(WHO, IS), *product(WHO_ZH, IS_ZH)]))
def test_what_is_said_of_somebody_else_is_not_said_of_the_user(said: tuple[str, str]) -> None:
    who, what = said
    own = ("我" if who in WHO_ZH else "I") + what
    assert apart(beside(read(who + what), read(own))) == "person"
    assert apart(beside(read(own), read(who + what))) == "person"


@given(st.sampled_from([*permutations(WHO, 2), *permutations(WHO_ZH, 2)]))
def test_two_people_are_two(both: tuple[str, str]) -> None:
    one, other = (people(f"{who} is here" if who in WHO else f"{who}在这里") for who in both)
    assert of_another(one, other)
    assert not of_another(one, one)


@every_case(
    ("written_so", "is_read"),
    [
        ("at 9 a.m. or 12 pm", "at 09:00 or 12:00"),
        ("下午三点半", "15:30"),
        ("凌晨 2 点", "02:00"),
        ("零下二十五度", "-25度"),
        ("minus 4 and 2½", "-4 and 2.5"),
        ("12 degrees below zero", "-12 degrees"),
        ("pages 5-9 of 1/2", "pages 5-9 of 1/2"),
        ("I am at 3", "I am at 3"),
    ],
)
def test_figures_have_one_spelling(written_so: str, is_read: str) -> None:
    assert plain(written_so) == is_read


@given(st.text(max_size=300))
def test_any_text_has_one_spelling_and_people_or_none(text: str) -> None:
    assert plain(plain(text)) == plain(text) or any(c.isdigit() for c in plain(text))
    assert isinstance(people(text).others, frozenset)
    assert not same_attribute(read(text).states, read(text).states, is_told=False)


def test_who_is_only_called_he_or_she_is_somebody_else() -> None:
    assert people("He lives in Oslo.").others == {"he"}
    assert people("她住在奥斯陆。").others == {"she"}


@every_case(
    "text",
    [
        "My manager is strict.",
        "I live in a flat.",
        "我的经理是湖南人",
        "I work at night",
        "我住在三楼",
        "会议搬到周五",
    ],
)
def test_what_says_more_or_less_than_a_value_states_no_attribute(text: str) -> None:
    assert stated(text) is None


@every_case(
    ("one", "other", "differs"),
    [
        ("My manager is Noor.", "My manager is Noor Haddad.", False),
        ("My manager is Noor.", "My manager is Olga Haddad.", True),
        ("My manager is Noor.", "My mentor is Olga.", False),
    ],
)
def test_parts_of_a_name_are_the_same_name(one: str, other: str, differs: bool) -> None:
    assert same_attribute(read(one).states, read(other).states, is_told=False) == differs


def test_the_case_of_code_counts_and_that_of_words_does_not() -> None:
    assert content_hash("The table is `Rows`.") != content_hash("The table is `rows`.")
    assert content_hash("rowId is a key.") != content_hash("rowid is a key")
    assert content_hash("rowId is a key.") == content_hash("rowId IS a key")
    assert content_hash("GitHub keeps it.") == content_hash("github keeps it")
