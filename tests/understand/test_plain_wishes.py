"""Wishes and facts that are said without ado are kept; what only looks like them is not."""

from supervisor_memory.understand.statements import asks_once, read_statements
from tests.cases import every_case


@every_case(
    "text",
    [
        "Use footnotes.",
        "Please use plain language.",
        "Include examples.",
        "Write in a friendly tone.",
        "Use a 24-hour clock.",
        "Use celsius for all temperatures.",
        "I want summaries in Dutch.",
        "I need reports with headings.",
        "I'd like replies short.",
        "I have moved to Tampere.",
        "We've just relocated to Bilbao.",
        "I've become a father.",
        "I have switched to a new job.",
        "We have adopted a dog.",
        "I've left Acme.",
        "I have changed my name.",
        "My daughter attends a Waldorf school.",
        "Spreadsheets are easier for me.",
        "The launch will be in May, that's decided.",
        "Remember that I have changed jobs.",
        "用脚注。",
        "多用例子。",
        "用友好的语气。",
        "全篇用公制单位。",
        "我希望答案分点，带小标题",
        "我已经搬到无锡了。",
        "我换了新手机号，尾号6628。",
        "我开会的时候，别给我发长消息。",
        "年会定在十二月九号。",
        "我们家去年从长沙搬到深圳。",
        "记着，门禁卡月底换新。",
    ],
)
def test_what_is_plainly_said_is_kept(text: str) -> None:
    assert [each.text for each in read_statements(text).worth_keeping] == [text]


@every_case(
    "text",
    [
        "Use the second table.",
        "Use pandas to plot it.",
        "Use this chart instead.",
        "Add a table with totals.",
        "Include the last row.",
        "Use bullet points for this one.",
        "I want the report in an hour.",
        "I need numbers for March.",
        "I want results now.",
        "I want charts in column B.",
        "I have moved to the next question.",
        "I've moved the file to Downloads.",
        "I have switched to the other tab.",
        "I've left the window open.",
        "I have become confused.",
        "My son says hi.",
        "Results are better.",
        "Sales are better this month.",
        "These make me nervous.",
        "Your answer makes me happy.",
        "Errors only.",
        "Read only.",
        "Weekdays only?",
        "It makes me wonder.",
        "The meeting is settled?",
        "用这个表格。",
        "用第二张图。",
        "用刚才的格式再来一次。",
        "我想要这张图。",
        "我要报告，快点。",
        "我搬到下一步了。",
        "我把文件搬到桌面了。",
        "我换了一个浏览器再试试。",
        "我开了一个新窗口。",
        "我开了一家店铺的页面给你看。",
        "天气只要不下雨就行。",
        "这让我很烦躁。",
        "会议定在几点？",
        "我的电脑都要死机了。",
        "我问你的时候，你怎么不说？",
        "我回来的时候，就已经没了。",
        "我戴着眼镜在看你的图。",
        "你让我头疼。",
        "我的代码都不对。",
        "今天的会改在三点。",
        "我加入了购物车。",
        "我入职那天的表格在哪？",
        "用中文怎么说“table”？",
        "用Excel打开。",
    ],
)
def test_no_rule_takes_what_only_looks_like_it(text: str) -> None:
    assert [each for each in read_statements(text).worth_keeping if not each.is_learned] == []


@every_case(
    ("text", "once"),
    [
        ("This time, use a list.", True),
        ("Plot it as a bar chart this time. Use euros just this once.", True),
        ("这次用列表。", True),
        ("Right now I want a table.", True),
        ("这次我要表格。", True),
        ("Right now I'm playing Brahms.", False),
        ("I live with my parents for the time being.", False),
        ("我暂时住在父母家。", False),
        ("Always use lists.", False),
        ("以后都用列表。", False),
    ],
)
def test_what_is_asked_for_this_time_alone_is_known(text: str, once: bool) -> None:
    assert asks_once(text) is once
