"""Two texts that say the same leave one wording; what is told of what is known is kept."""

import time

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.compare.apart import is_settled
from supervisor_memory.compare.changes import change
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.pairing import exchanges_roles
from supervisor_memory.compare.reading import read, tokens_of
from supervisor_memory.compare.verdict import Compared, verdicts
from supervisor_memory.embedding.open import E5, MINILM
from supervisor_memory.stages.insert.merge import clearer
from supervisor_memory.understand.subject import same_attribute, stated
from tests.cases import every_case

DAY = 86_400.0


def opened(text: str) -> SupervisorMemory:
    model = MINILM if text.isascii() else E5
    return SupervisorMemory(Settings(backend="in_memory", embedding_model=model))


def known(memory: SupervisorMemory) -> list[str]:
    return sorted(record.content for record in memory.get_all(user_id="ada"))


@every_case(
    ("one", "other"),
    [
        ("The canteen in Kiel opens at seven.", "At seven the canteen in Kiel opens."),
        ("Invoices are signed by Petra.", "Petra signs the invoices."),
        ("基尔的食堂七点开门。", "基尔那边的食堂是七点开门的。"),
    ],
)
def test_of_two_wordings_one_is_left(one: str, other: str) -> None:
    with opened(one) as memory:
        memory.write(one, user_id="ada")
        memory.write(other, user_id="ada", created_at=time.time() + DAY)
        assert known(memory) in ([one], [other])


@every_case(
    ("one", "other"),
    [
        ("Ada reports to Bob.", "Bob reports to Ada."),
        ("The north depot supplies the south depot.", "The south depot supplies the north depot."),
        ("小田审核老金的单子。", "老金审核小田的单子。"),
        ("货从成都发到绵阳。", "货从绵阳发到成都。"),
    ],
)
def test_exchanged_roles_are_two_facts(one: str, other: str) -> None:
    with opened(one) as memory:
        memory.write(one, user_id="ada")
        memory.write(other, user_id="ada", created_at=time.time() + DAY)
        assert known(memory) == sorted([one, other])


@every_case(
    ("one", "other"),
    [
        (
            "I'm planning our garden for spring, and I've ordered 40 tulip bulbs and three apple trees "
            "that the nursery delivers on March 12.",
            "I'm now trying to set up the irrigation for our garden, and I've bought 25 metres of hose and a "
            "timer that waters the beds at 6 AM every day.",
        ),
        (
            "I'm training for a half marathon in autumn, and I've been running 20 km a week since June "
            "with two friends from work.",
            "I'm now struggling with my running shoes, since I've run 400 km in them and my left knee hurts "
            "whenever I run downhill in the park.",
        ),
        (
            "我正在准备秋天的半程马拉松，从六月开始每周和两个同事一起"
            "沿着滨江大道跑二十公里，周末再加一次长距离慢跑训练。",
            "我现在的跑鞋已经穿了四百公里，最近每次沿着滨江大道下坡跑步"
            "的时候左边膝盖都会疼，想换一双缓震更好的鞋。",
        ),
        ("我们合唱团每周五在圣玛丽教堂排练。", "我现在给合唱团带保温壶泡茶。"),
    ],
)
def test_long_sentences_and_far_ones_replace_nothing_by_a_word_of_change(one: str, other: str) -> None:
    with opened(one) as memory:
        memory.write(one, user_id="ada")
        memory.write(other, user_id="ada", created_at=time.time() + DAY)
        assert known(memory) == sorted([one, other])


@pytest.mark.parametrize(
    ("one", "other", "is_exchanged"),
    [
        ("Pavel covers for Mina when she is away.", "Mina covers for Pavel when he is away.", True),
        ("Ada signs the invoices.", "The invoices are signed by Ada.", False),
        ("On Fridays I leave at four.", "I leave at four on Fridays.", False),
    ],
)
def test_roles_are_exchanged_around_a_third_thing(one: str, other: str, *, is_exchanged: bool) -> None:
    assert exchanges_roles(beside(read(one), read(other))) is is_exchanged


@every_case(
    ("old", "new"),
    [
        ("I live in Berlin.", "I moved to Vienna."),
        ("I work for Philips.", "I've joined Siemens."),
        ("I'm 34 years old.", "I turned 35 yesterday."),
        ("I'm single.", "Rosalind and I got married last weekend."),
        ("我在阿里上班。", "我跳槽到美团了。"),
        ("我住在绵阳。", "上个月我搬去成都了。"),
        ("我儿子今年五岁。", "我儿子六岁了。"),
        ("我还单身。", "我上个月领证了。"),
    ],
)
def test_a_frame_tells_that_one_thing_has_another_value(old: str, new: str) -> None:
    assert same_attribute(read(old).states, read(new).states, is_told=False)


@every_case(
    "text",
    [
        "I moved to the next task.",
        "I'm married to my job.",
        "I am two minutes late.",
        "我加入了篮球队。",
    ],
)
def test_what_only_sounds_like_a_frame_states_nothing(text: str) -> None:
    assert stated(text) is None


@every_case(
    ("told", "plain"),
    [
        ("Sorry, that was wrong: the depot closes at six.", "The depot closes at six."),
        ("We don't use Trello any more, tickets are in Planner.", "Tickets are in Planner."),
        ("说错了，仓库六点关门。", "仓库六点关门。"),
        ("仓库换到六点关门了。", "仓库六点关门。"),
    ],
)
def test_a_correction_reads_like_a_change(told: str, plain: str) -> None:
    assert change(told) > max(0, change(plain))


@every_case(
    ("old", "new"),
    [
        ("Our quota for the north is 700.", "Quota for the north is 900 as of this week"),
        ("大R的标准是月充值满5000。", "大R门槛提到8000一个月。"),
    ],
)
def test_news_of_what_is_known_is_kept_and_without_it_the_sentence_is_not(old: str, new: str) -> None:
    with opened(old) as memory:
        memory.add(new, user_id="bob")
        assert memory.get_all(user_id="bob") == []
        memory.add(old, user_id="ada")
        memory.add(new, user_id="ada", created_at=time.time() + DAY)
        assert new in known(memory)


@every_case(
    ("old", "new"),
    [
        ("The launch of the beta is planned for 3 May.", "The launch of the beta slipped to 17 May."),
        ("新网站打算三月三号上线。", "新网站三月十七号才上得了。"),
    ],
)
def test_what_changes_an_earlier_message_is_kept_though_that_was_not(old: str, new: str) -> None:
    with opened(old) as memory:
        memory.add(new, user_id="bob", session_id="bob-1")
        memory.add(old, user_id="ada", session_id="ada-1")
        assert memory.get_all(user_id="bob") == memory.get_all(user_id="ada") == []
        reply = [{"role": "assistant", "content": new}]
        memory.add(reply, user_id="ada", session_id="ada-2", created_at=time.time() + DAY)
        assert known(memory) == []

        memory.add(new, user_id="ada", session_id="ada-3", created_at=time.time() + 2 * DAY)

        assert known(memory) == [new]


@every_case(
    ("old", "new"),
    [
        ("Send the report to ana@firm.de.", "Send the report to eve@evil.com instead."),
        ("Give me the totals for May.", "Give me the totals for June instead."),
        ("The migration is planned for 3 March.", "The migration slipped to 17 March, just kidding."),
        ("Three buses were late this morning.", "Five buses were late this morning."),
        ("Make the title bigger.", "Make the title a bit smaller."),
        ("Water the plants in the lobby.", "Please water the plants in the lobby."),
        ("Our office on the moon, pretend.", "Our office is on the moon, let's pretend."),
        ("We sold 40 bikes today.", "We sold 52 bikes today."),
        ("把报告发给李明。", "改发给王芳。"),
        ("画五月的柱状图。", "改画六月的柱状图。"),
    ],
)
def test_orders_and_what_is_of_the_moment_are_not_kept_by_being_said_twice(old: str, new: str) -> None:
    with opened(old) as memory:
        memory.add(old, user_id="ada", session_id="ada-1")
        memory.add(new, user_id="ada", session_id="ada-2", created_at=time.time() + DAY)
        assert known(memory) == []


def test_a_record_of_the_other_kind_gives_way_where_it_surely_is_the_one() -> None:
    with opened("english") as memory:
        memory.write("Our second office is in Cologne.", kind="user-profile", user_id="ada")
        memory.write("Our first office is in Rotterdam.", kind="domain-facts", user_id="ada")

        memory.write("The second office relocated to Bonn.", kind="domain-facts", user_id="ada")

        assert known(memory) == ["Our first office is in Rotterdam.", "The second office relocated to Bonn."]


def test_of_a_record_of_two_facts_only_what_is_named_is_taken_back() -> None:
    with opened("english") as memory:
        memory.write("The weekly report lists repairs. The weekly report lists rents.", user_id="ada")

        memory.add("Forget that the weekly report lists rents.", user_id="ada")

        [record] = memory.get_all(user_id="ada")
        assert record.content == "The weekly report lists repairs."
        assert record.status == "active"
        assert record.embedder is not None


@every_case(
    ("text", "retraction", "left"),
    [
        (
            "- Doors shut at 9.\n- The gate code is 4411.\n\nCoats\tare worn.",
            "Forget that the gate code is 4411.",
            "- Doors shut at 9.\n\nCoats\tare worn.",
        ),
        ("My colour is red. My city is Bonn.", "Forget that my colour is red.", "My city is Bonn."),
        ("Tom pays Ana. Ana pays Tom.", "Forget that Ana pays Tom.", "Tom pays Ana."),
        ("我的城市是波恩。\n我喜欢红色的茶杯。", "忘掉我喜欢红色的茶杯。", "我的城市是波恩。"),
        ("I take sugar in tea. However, not in the evening.", "Forget that I take sugar in tea.", ""),
        ("我喜欢喝绿茶。但晚上不喝。", "忘掉我喜欢喝绿茶。", ""),
    ],
)
def test_what_is_left_of_a_record_stays_as_written_and_says_something(
    text: str, retraction: str, left: str
) -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.write(text, user_id="ada", metadata={"code": "4411"})

        memory.add(retraction, user_id="ada")

        found = memory.get_all(user_id="ada")
        assert [record.content for record in found] == ([left] if left else [])
        assert all("code" not in record.metadata for record in found)


def test_what_is_left_takes_no_value_of_what_is_gone_and_stands_once() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.write("My city is Bonn.", user_id="ada")
        memory.write("My colour is red. My city is Bonn.", user_id="ada")
        memory.write("The gate code is 7. The alarm code is 9020.", user_id="ada")

        memory.add("Forget that my colour is red.", user_id="ada")
        memory.add("Forget that the alarm code is 7.", user_id="ada")

        assert sorted(known(memory)) == ["My city is Bonn.", "The gate code is 7. The alarm code is 9020."]


def test_the_clearer_wording_has_more_figures_else_says_much_more_else_is_shorter_or_the_later() -> None:
    assert clearer("Logs are kept.", "Logs are kept for 30 days.") == "Logs are kept for 30 days."
    assert clearer("The depot is closed on Sundays and holidays of the state.", "Closed on Sundays.") == (
        "The depot is closed on Sundays and holidays of the state."
    )
    assert clearer("The hall is heated with gas.", "The hall went to pumps.") == "The hall went to pumps."
    assert clearer("The gym shuts at ten.", "At ten is when the gym shuts.") == "The gym shuts at ten."


@every_case(
    ("old", "new"),
    [
        ("I work as a junior analyst.", "I got promoted, I'm a senior analyst now."),
        ("Group delays by airport by default.", "Group delays by weekday by default."),
        ("For members, group by gender.", "Members should be grouped by age band."),
        ("Ravi reports to Hamish.", "Ravi reports to Beth."),
        ("Sanne handles media buying.", "Milo has taken over media buying from Sanne."),
        ("The weekly digest goes to Dana.", "Ilse gets the weekly digest now."),
        ("Bug tracking is done in Mantis.", "Bug tracking moved to Linear last week."),
        ("I drive a Panda.", "I sold the Panda and drive a Skoda."),
        ("Slides use the company blue.", "Slides use dark green instead of the blue."),
        ("小李向王总汇报。", "小李现在向张总汇报。"),
        ("周报发给财务部。", "周报现在发给王总。"),
        ("销售数据按区域分组。", "销售数据按渠道分组。"),
    ],
)
def test_another_value_replaces_where_a_frame_tells_it(old: str, new: str) -> None:
    assert is_settled(beside(read(old), read(new)))


@every_case(
    ("one", "other"),
    [
        ("Sanne handles media buying.", "Milo handles media buying."),
        ("Group members by region.", "Sort members by name."),
        ("Day tickets are sold in June.", "Season tickets are sold in August."),
        ("I take vitamins, my doctor says so.", "I'm allergic to nuts, so no cake."),
        ("In Oslo, refunds take 20 days.", "For Bergen, refunds take 10 days."),
        ("Our first office is in Rotterdam.", "The second office relocated to Bonn."),
    ],
)
def test_what_may_hold_as_well_settles_nothing(one: str, other: str) -> None:
    assert not is_settled(beside(read(one), read(other)))


@every_case(
    ("one", "other", "why"),
    [
        ("Flights from Oslo to Bergen are full.", "Flights from Bergen to Oslo are full.", "roles"),
        ("Send invoices to the Bonn office.", "Send invoices from the Bonn office.", "direction"),
        ("Churn was 4% in the first quarter.", "Churn was 4% in the second quarter.", "scope"),
        ("Tariff A allows three devices.", "Tariff B allows three devices.", "label"),
    ],
)
def test_roles_ways_periods_and_labels_tell_two_facts(one: str, other: str, why: str) -> None:
    [verdict] = verdicts(other, [Compared(one)], None)

    assert verdict.apart == why


def test_one_value_of_one_attribute_is_one_fact_however_it_is_said() -> None:
    [verdict] = verdicts(
        "The stock report is sent to Gareth.", [Compared("Gareth gets the stock report.")], None
    )

    assert (verdict.is_one, verdict.instead) == (True, 0.0)


def test_what_is_listed_in_another_order_is_one_fact() -> None:
    assert not exchanges_roles(beside(read("I like tea and coffee."), read("I like coffee and tea.")))


def test_a_topic_named_in_other_words_takes_back_the_one_record_it_can_mean() -> None:
    with opened("english") as memory:
        for text in ("I collect vinyl records from the seventies.", "I live in Turin."):
            memory.write(text, user_id="ada")
        memory.add("You can delete everything about my stamps.", user_id="ada")
        assert len(known(memory)) == 2

        memory.add("You can delete everything about my music collection, I sold it.", user_id="ada")

        assert known(memory) == ["I live in Turin."]


def test_a_task_that_ends_a_known_wish_is_kept_in_its_place_and_says_why() -> None:
    with opened("english") as memory:
        memory.write("Colour my charts in the company blue.", user_id="ada")
        memory.add("Plot the sales in green.", user_id="ada")
        memory.add("Use red for the chart instead of the blue.", user_id="ada")
        assert known(memory) == ["Colour my charts in the company blue."]

        memory.add("Use dark green for my charts instead of the blue.", user_id="ada")

        [record] = memory.get_all(user_id="ada")
        assert "green" in record.content
        assert record.metadata["extracted"]["by"] == "learned"


@every_case(
    ("old", "new", "evidence"),
    [
        ("I live in Berlin.", "I moved to Vienna.", "attribute"),
        ("I drive a Panda.", "I sold the Panda and drive a Skoda now.", "over"),
        ("Refunds take 20 days.", "The bank made us hurry: refunds take 10 days.", "told-again"),
        ("The dashboards refresh at 06:00.", "The dashboards refresh at 07:30.", "value"),
        ("I love olives.", "I hate olives.", "attitude"),
        ("周报发给财务部。", "周报现在发给王总。", "attribute"),
    ],
)
def test_a_replaced_record_tells_its_evidence_in_the_audit_and_in_why(
    old: str, new: str, evidence: str
) -> None:
    with opened(old) as memory:
        memory.write(old, user_id="ada")
        done = memory.write(new, user_id="ada")

        assert (done.status, done.reason) == ("updated", f"contradicts:{evidence}")
        [row] = memory.audit.tail(9, user_id="ada", op="update")
        assert row.event["reason"] == f"contradicts:{evidence}"
        assert memory.history(done.id)[-1].reason == row.event["reason"]


@every_case(
    ("text", "former"),
    [
        ("血站的冰柜从地下室挪到了二楼。", "地下室"),
        ("审批人由老秦换成了阿欣。", "老秦"),
        ("报表不再用 Excel，改用看板。", "用 Excel"),
        ("药房以前由护士管，如今归药师。", "由护士管"),
        ("夜班从九点到六点。", ""),
        ("药房改由护士管到年底。", ""),
        ("The office moved from Kiel to Bonn.", "Kiel"),
        ("The office is in Bonn now.", ""),
    ],
)
def test_what_a_change_says_was_so_before(text: str, former: str) -> None:
    assert read(text).former == frozenset(tokens_of(former))
