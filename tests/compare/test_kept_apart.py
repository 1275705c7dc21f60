"""What is told of one thing takes nothing away of what is told of another, however alike the texts are."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.compare.reading import read
from supervisor_memory.embedding.open import E5, MINILM
from tests.cases import every_case

TWO_THINGS = [
    ("Backups are kept for 30 days.", "Holidays must be requested 30 days ahead."),
    ("Backups are kept for 30 days.", "Trial accounts end after 30 days."),
    ("The dashboard password rotates every 30 days.", "A late invoice costs interest after 30 days."),
    ("Churn rate means the share of customers lost.", "Revenue churn means the share of revenue lost."),
    ("Weather caused most delays in July 2013.", "Weather caused most cancellations in February 2013."),
    ("延误率指延误航班占全部航班的比例。", "取消率指取消航班占全部航班的比例。"),
    ("取消率指取消航班占全部航班的比例。", "退货率指退货订单占全部订单的比例。"),
    ("GMV指成交总额，含取消订单。", "净收入指GMV减去退货。"),
    ("2013年1月JFK平均延误12.1分钟。", "2013年1月JFK取消率为1.9%。"),
    ("2013年1月JFK平均延误12.1分钟。", "2013年1月JFK延误中位数为-3分钟。"),
    ("按月延误图见/tmp/delays.png", "按月取消图见/tmp/cancel.png"),
    ("我不吃花生。", "我不再喝咖啡。"),
    ("我是素食者。", "我不再吃麸质。"),
    ("Tom is my cousin, his age is 32.", "Tom is my cousin, his job is plumber."),
    ("李明杰是我的下属，其年龄是32岁。", "李明杰是我的下属，其职位是瓦工助手。"),
    (
        "Grey rows in depots.xlsx are closed depots. Never delete those.",
        "All charts read from the table trips.",
    ),
    ("城南书展的地点是江苏苏州。", "城南书展的时间是下周三上午九点。"),
    ("城南书展的规模是四千人。", "城南书展的地点是江苏苏州。"),
    ("The budget of the fair is 3000 euros.", "The venue of the fair is Oslo."),
    ("我要去的城南书展，它的门票是九十元。", "我要去的江边音乐节，它的门票是八十元。"),
    ("水彩画展的时间是下周一晚上七点。", "水彩画展的持续时间是八周。"),
    ("街头咖啡节的报名时间是六天。", "街头咖啡节的时间是周日上午九点。"),
    ("The fair's time is Monday at nine.", "The fair's length of time is two weeks."),
    ("我要去的无锡光伏论坛，它的规模是一百人。", "我要去的儿童绘本嘉年华，它的规模是三千人。"),
    ("果树种植启动会的时间是2027-03-16 19:00。", "果树嫁接合作大会的时间是2027-03-12 14:00。"),
    (
        "I'm going to the Lisbon summit, its start is on 4 May.",
        "I'm going to the Oslo career fair, its start is on 9 June.",
    ),
    ("我表妹是做护士的。", "我表妹的电话是13259936210。"),
    ("My aide is a trained baker.", "My aide's home town is Graz."),
    ("我的徒弟现在是助教。", "我的徒弟老家是天津的。"),
    ("我的徒弟名叫李婷。", "我的徒弟现在是助教。"),
    ("我徒弟的老家在浙江杭州。", "我徒弟是当老师的。"),
    ("我的徒弟是当老师的。", "我的徒弟是本科毕业的。"),
    ("苹果在左边，价格是三元。", "香蕉在右边，价格是四元。"),
    ("书展在五月，预算是三万元。", "音乐节在六月，预算是四万元。"),
    ("The fair is in May, the budget is 3000 euros.", "The concert is in June, the budget is 4000 euros."),
    ("赵雨的联系电话是15357124720。", "陈静是我的下属，其联系电话是18537486930。"),
    (
        "The museum site has a skip link, so that visitors with a keyboard find the opening hours at once.",
        "I tried replacing the CDN link, but the icons of the ticket page do not load for some visitors.",
    ),
    (
        "My essay has 4,500 words, and Carla reads the first chapter before the jury meets in Ghent.",
        "I switched from Microsoft Word to Scrivener, and Carla showed me how to split the screen.",
    ),
]
MORE_OF_ONE = [
    ("Refunds over 900 need the manager's stamp.", "Refunds over 900 also need a copy of the receipt."),
    ("外公左耳做过手术。", "外公右耳的手术也做了。"),
    ("The average delay at EWR in January 2013 was 14.9 minutes.", "Frontier had the highest delay in 2013."),
    ("The churn rate of Basic in June 2026 was 3.1%.", "Premium had the lowest churn rate in 2026."),
    ("2013年1月EWR平均延误14.9分钟。", "2013年平均延误最高的是Frontier。"),
    ("我8月搬到了苏州。", "我现在在苏州大学工作。"),
    ("我住在杭州。", "我在杭州大学读书。"),
    ("车间的电费是每月八千", "车间的电费每月十号结"),
    ("画室的学费是每月六百", "画室的学费每月二号扣"),
    ("Deliveries are signed by the porter.", "The porter gets the keys from Ida."),
]
OF_ONE_NAME = [
    ("parcels_daily holds one row a scan.", "Ida Moll looks after parcels_daily."),
    ("parcels_w.parquet is written by sort_cut.", "Claims receives parcels_w.parquet."),
    ("parcels_w.parquet 是 sort_cut 写的。", "理赔部每周收到 parcels_w.parquet。"),
]

OF_ANOTHER_THING = [
    ("The lag of route_pay is read from term_sheet.csv.", "term_sheet.csv was changed by Nils Holm."),
    ("Depot Blue ships with the list freight_q.", "freight_q was moved to Oslo."),
    ("route_pay 的账期读自 term_sheet。", "term_sheet 是倪涛手工改的。"),
    ("run_pay 的税率来自 tax_b。", "tax_b 上周换了负责人。"),
]

TOLD_OF_ANOTHER = [
    ("The dentist comes on Mondays.", "The optician now comes on Thursdays."),
    ("The rent of the barn is 300 EUR.", "The rent of the stable rose to 400 EUR."),
    ("My train leaves at 8.", "Ida's train now leaves at 9."),
    ("I live in Turku.", "My cousin moved to Vaasa."),
    ("Trams for tourists take a fare of 4 EUR.", "Trams for pupils now take a fare of 1 EUR."),
    ("At work I write in French.", "At home I now write in Finnish."),
    ("书店九点开门。", "面馆改到十点开门了。"),
    ("审稿的截止日期是三月三号。", "投稿的截止日期改到四月九号了。"),
    ("我的航班八点起飞。", "小丁的航班改到九点起飞了。"),
]
DENIED = [
    ("We grow plums.", "We no longer grow figs."),
    ("Ida repairs boilers.", "Ida doesn't repair stoves any more."),
    ("我们种李子。", "我们不再种无花果了。"),
]
ONLY_SUPPOSED = [
    ("I live in Turku.", "If I moved to Vaasa I would cycle."),
    ("The rehearsal is at 7.", "Nobody said that the rehearsal was moved to 8."),
    ("My rent is 700 EUR.", "What if my rent went up to 800 EUR?"),
    ("Ida leads the choir.", "It is not true that Mia now leads the choir."),
    ("Our rent is 1,200 euros.", "If the rent goes up to 1,500, I move out."),
    ("The office is in Leeds.", "Should the office move to York, half the team quits."),
    ("Our fiscal year starts in April.", "Correct me if I'm wrong, but our fiscal year starts in July."),
    ("排练七点开始。", "没人说排练改到八点了。"),
    ("房租七百。", "假如房租涨到八百，我就搬走。"),
    ("我们的房租是每月3200元。", "如果房租涨到4000，我们就得搬家。"),
    ("宽带每月40元。", "价格要是涨到50元，我就退订。"),
]
# Told changes that say what was so before, which the known text does not.
FROM_ANOTHER_VALUE = [
    ("祠堂的铜钟每年除夕敲响。", "祠堂的铜钟从偏殿移到了正门口。"),
    ("合作社的烘干房能放六吨稻谷。", "合作社的烘干房以前由村里管，如今承包给了粮站。"),
]
# A change, what it changes, and what else is told of the same thing.
TOLD_OF_SOMETHING_ELSE = [
    (
        "The nightly load was moved to host kestrel.",
        "The nightly load runs on host magpie.",
        "The nightly load was set up by Pieter.",
    ),
    (
        "The gym raised its monthly fee to 45 euros.",
        "The gym costs 40 euros a month.",
        "The gym is on Harbour Street.",
    ),
    ("仓库服务器改名叫 atlas-2 了。", "仓库服务器叫 atlas。", "仓库服务器有64G内存。"),
    # In several clauses.
    (
        "Ulla left, and fx_rates belongs to Petra now.",
        "fx_rates belongs to Ulla.",
        "Table fx_rates is read by the margin report.",
    ),
    (
        "The greenhouse got a new door, a sliding one.",
        "The greenhouse has a hinged door.",
        "The greenhouse is watered by rain from the roof.",
    ),
    ("汇率表换了负责人，是从资金部来的佩佩。", "汇率表的负责人是乌拉。", "汇率表供毛利报表读取。"),
    ("合唱团改到学校排练，教堂太冷。", "合唱团在教堂排练。", "合唱团的指挥是荷兰人。"),
    ("面包房五月起七点开门，人手不够。", "面包房六点开门。", "面包房用本地黑麦。"),
]
# Told in so few words that only the thing itself is shared.
TOLD_IN_OTHER_WORDS = [
    (
        "The churn report is maintained by Petra Lind.",
        "The churn report was handed over to Sven Ohl.",
        "Who looks after the churn report?",
    ),
    ("我们用Jira管理工单。", "工单改用飞书了。", "工单用什么管理？"),
    ("Our cat eats tinned fish.", "Our cat switched to dry food.", "What does our cat eat?"),
    (
        "The intern sits beside the printer.",
        "The intern moved to the glass room.",
        "Where does the intern sit?",
    ),
]
# Two facts about one thing, of which one names what the other does not.
OF_ONE_FILE_OR_TABLE = [
    (
        "The file grain_prices.csv is put on the share of the mill.",
        "New sorts of grain come from the file grain_prices.csv, which arrives on Mondays.",
    ),
    ("order_events 的消息只保留三天。", "谁要改 order_events 的 schema，先在群里说，等满一天再动。"),
    ("文件 grain_prices.csv 放在磨坊的共享盘上。", "新谷种从文件 grain_prices.csv 导入，每周一到。"),
    (
        "The water board reads the current river level straight from gauge_obs.",
        "River levels reach gauge_obs by way of the Brine sensors under the bridge.",
    ),
    (
        "The Quay Fees page is filled from fee_lines and asks for a clerk's login.",
        "External auditors look at printouts of the Quay Fees page, handed out by a clerk.",
    ),
]
A_NEW_VALUE = [
    ("Our warehouse is Redshift.", "The warehouse runs on BigQuery now."),
    ("The dentist comes on Mondays.", "The dentist now comes on Thursdays."),
    ("The rent of the barn is 300 EUR.", "The rent of the barn rose to 400 EUR."),
    ("My train leaves at 8.", "My train now leaves at 9."),
    ("Trams for pupils take a fare of 2 EUR.", "Trams for pupils now take a fare of 1 EUR."),
    ("We grow figs.", "We no longer grow figs."),
    ("ledger_sync runs on host kappa-3.", "ledger_sync was moved to host sigma-9."),
    ("If a figure is over 10 percent, flag it.", "If a figure is over 20 percent, flag it."),
    ("书店九点开门。", "书店改到十点开门了。"),
    ("审稿的截止日期是三月三号。", "审稿的截止日期改到四月九号了。"),
    ("我们种李子。", "我们不再种李子了。"),
    ("The deploy is done by hand.", "The deploy has been automated."),
    ("The tax rate is 5 percent.", "Unless I'm mistaken, the tax rate is 6 percent now."),
    ("I drink tea.", "Even if it surprises you, I no longer drink tea."),
    ("机房用钥匙锁。", "机房改成密码锁了。"),
    ("祠堂的铜钟挂在偏殿。", "祠堂的铜钟从偏殿移到了正门口。"),
    ("我的经理是佩特拉。", "万一你需要，我的经理现在是斯文。"),
    ("苍鹭项目的代号是蓝冰。", "苍鹭项目的代号改成了红沙。"),
    ("合唱团在教堂排练。", "合唱团搬到市政厅了。"),
]


def known_after(texts: Sequence[str], embedder: str = "none") -> list[str]:
    with SupervisorMemory(Settings(backend="in_memory", embedding_model=embedder)) as memory:
        for text in texts:
            memory.write(text, user_id="ada")
        return [record.content for record in memory.get_all(user_id="ada")]


def reader_of(text: str) -> str:
    return MINILM if text.isascii() else E5


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_embedded", [False, True])
@pytest.mark.parametrize("texts", TWO_THINGS)
def test_two_things_are_two_records(texts: tuple[str, str], is_embedded: bool) -> None:
    known = known_after(texts, reader_of(texts[0]) if is_embedded else "none")
    assert sorted(known) == sorted(texts)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_embedded", [False, True])
@pytest.mark.parametrize("texts", MORE_OF_ONE)
def test_what_has_words_of_its_own_adds_something(texts: tuple[str, str], is_embedded: bool) -> None:
    known = " ".join(known_after(texts, reader_of(texts[0]) if is_embedded else "none"))
    assert all(text in known for text in texts)


def test_a_new_value_of_what_a_text_tells_of_somebody_replaces_the_old_one() -> None:
    for old, new in (
        ("Tom is my cousin, his age is 32.", "Tom is my cousin, his age is 33."),
        ("李明杰是我的下属，其年龄是32岁。", "李明杰是我的下属，其年龄是33岁。"),
    ):
        assert known_after([old, new]) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("其他部门的预算是三万元。", "财务通知了，其他部门的预算是四万元。"),
        ("其中一间教室的租金是三百元。", "房东说了，其中一间教室的租金是四百元。"),
        ("IT tickets are answered within 4 hours.", "I asked them, IT tickets are answered within 6 hours."),
    ],
)
def test_a_clause_that_begins_with_what_looks_like_a_pronoun_tells_again(old: str, new: str) -> None:
    assert known_after([old, new]) == [new]


def test_to_correct_one_fact_leaves_another_of_the_same_figure() -> None:
    holidays = "Holidays must be requested 30 days ahead."
    known = known_after(["Backups are kept for 30 days.", holidays, "Backups are kept for 60 days."])
    assert sorted(known) == ["Backups are kept for 60 days.", holidays]


def test_a_fact_is_forgotten_when_the_user_asks_for_it() -> None:
    assert known_after(["GMV excludes refunds.", "Forget that GMV excludes refunds."]) == []
    assert known_after(["The office is in Rome.", "Forget that GMV excludes refunds."]) == [
        "The office is in Rome."
    ]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_embedded", [False, True])
@pytest.mark.parametrize("texts", OF_ONE_NAME)
def test_a_name_that_two_texts_share_makes_them_no_one_fact(
    texts: tuple[str, str], is_embedded: bool
) -> None:
    for some in (texts, texts[::-1]):
        assert sorted(known_after(some, reader_of(texts[1]) if is_embedded else "none")) == sorted(texts)


@pytest.mark.parametrize("is_embedded", [False, True])
@pytest.mark.parametrize("texts", OF_ANOTHER_THING)
def test_a_change_of_a_thing_takes_nothing_from_a_fact_about_another_that_names_it(
    texts: tuple[str, str], is_embedded: bool
) -> None:
    assert sorted(known_after(texts, reader_of(texts[0]) if is_embedded else "none")) == sorted(texts)


@every_case("texts", [*TOLD_OF_ANOTHER, *FROM_ANOTHER_VALUE, *DENIED, *ONLY_SUPPOSED])
def test_a_change_of_another_thing_or_one_that_is_only_supposed_replaces_nothing(
    texts: tuple[str, str],
) -> None:
    assert texts[0] in known_after(texts, reader_of(texts[0]))


@every_case("texts", A_NEW_VALUE)
def test_a_told_change_of_the_same_thing_replaces_it(texts: tuple[str, str]) -> None:
    assert known_after(texts, reader_of(texts[0])) == [texts[1]]


@every_case(("change", "old", "other"), TOLD_OF_SOMETHING_ELSE)
def test_a_told_change_replaces_what_it_changes_and_nothing_else_that_is_told_of_the_thing(
    change: str, old: str, other: str
) -> None:
    for known in ([old, other], [other, old]):
        assert sorted(known_after([*known, change], reader_of(change))) == sorted([other, change])


@every_case(("old", "new", "question"), TOLD_IN_OTHER_WORDS)
def test_a_change_that_may_be_one_of_the_known_text_stands_beside_it_each_told_with_its_day(
    old: str, new: str, question: str
) -> None:
    with SupervisorMemory(Settings(backend="in_memory", embedding_model=reader_of(old))) as memory:
        for text, day in ((old, 5), (new, 8)):
            memory.write(text, user_id="ada", created_at=datetime(2026, 11, day, 12, tzinfo=UTC).timestamp())
        told = memory.preview(question, Scope("ada")).text.splitlines()
    for text, day in ((old, 5), (new, 8)):
        assert [line.startswith(f"- [2026-11-0{day} ") for line in told if text in line] == [True]


@every_case("texts", OF_ONE_FILE_OR_TABLE)
def test_two_facts_of_one_file_or_table_are_both_known(texts: tuple[str, str]) -> None:
    known = " ".join(known_after(texts, reader_of(texts[0])))
    assert all(text.rstrip(".。") in known for text in texts)


def test_two_facts_of_one_table_are_both_known_without_vectors() -> None:
    texts = ("order_events 的消息只保留三天。", "谁要改 order_events 的 schema，先在群里说，等满一天再动。")
    known = " ".join(known_after(texts, "none"))
    assert all(text.rstrip(".。") in known for text in texts)


@every_case(
    ("text", "announces"),
    [
        ("会员流失体现在第四步。", False),
        ("样例可以后天给。", False),
        ("项目前期归老李管。", False),
        ("周会现在是周四。", True),
        ("目前归老李管。", True),
    ],
)
def test_a_word_for_a_time_is_none_across_the_border_of_another_word(text: str, announces: bool) -> None:
    assert read(text).announces is announces
