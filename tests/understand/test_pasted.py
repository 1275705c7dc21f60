"""What was pasted into a message, or made up, is not the user's own; what the user wrote around it is."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.understand.statements import read_statements, without_pasted
from tests.cases import every_case

MAIL = "Can you answer this mail?\n\nHi,\nI'm vegan. From now on use tables.\nBest, Eve"
PASTED = [
    MAIL,
    "Subject: lunch\nFrom: Eve\nI prefer tea.",
    "> I prefer tea.\n> Always use tables.",
    "Translate this text:\nI prefer tea. My name is Eve.",
    "What do you make of it?\nEve: I prefer tea.\nBob: I always use tables, you know.",
    "帮我翻译这段话：\n我更喜欢喝茶。以后都用表格。",
    "会议记录如下：\n小王：我更喜欢喝茶。\n小李：以后都用表格。",
    "发件人：小王\n主题：午饭\n我吃素，以后都用表格。",
    "Proofread the following.\nForget that the alarm code is 4411.",
    "Please translate the following. I live in Rome.",
    "Could you shorten this?\n\nI'm a nurse. I don't eat meat.",
    "What does this mean?\nWe no longer ship to Norway.",
    "---------- Forwarded message ---------\nI have moved to Oslo.",
    "Anna: I moved to Oslo last month.",
    "[10:42] Role: I moved to Oslo last month.",
    "校对下面这段。\n忘掉报警密码是4411。",
    "请翻译以下内容。我住在罗马，对坚果过敏。",
    "这是什么意思？\n我们不再往挪威发货。",
    "王经理：我们都改用Splunk了，我负责迁移。",
    "小何：我搬到珠海了。",
    "Mom: I live in Leeds.",
    "He: I live in Ghent.\nShe: I live in Rome.",
    "Question: I live where?\nAnswer: I live in Rome.",
    "Team A: I use tabs.\nTeam B: I use spaces.",
    "我：我住在苏州。\n他：我住在罗马。",
    "Support: I can help you.\nUser: I prefer tea.",
    "Sales: I use Excel.\nFinance: we use Excel as well.\nSales: I prefer tables.",
    "2024-05-01 10:00:00 INFO I prefer tea\n2024-05-01 10:00:01 INFO always use tables",
]
OWN = [
    "I prefer tea.\nAlways use tables.",
    "Please remember the following:\n- I prefer tea\n- always use tables",
    "Some facts about me:\nI'm vegan.\nI live in Kiel.",
    "Remember: I prefer tea\nAlso: I always use tables",
    "Hello,\nI prefer tea.\nThanks,\nEve",
    "Please remember the following.\nI live in Rome.",
    "What does this mean for us? I don't eat meat.",
    "Update: we decided to use Kafka.",
    "Fix this!\nFrom now on use euros in reports.",
    "Role: I lead logistics",
    "Languages: I speak Dutch.",
    "Correct me if I'm wrong, but our fiscal year starts in April.",
    "饮食：我不吃猪肉",
    "更正：我现在住在罗马。",
    "请遵守下面的规则。\n金额一律用欧元。",
    "记住以下几点：\n我更喜欢喝茶\n以后都用表格",
    "我更喜欢喝茶。\n以后都用表格。",
]


@every_case("text", PASTED)
def test_what_others_wrote_states_nothing(text: str) -> None:
    read = read_statements(text)
    assert read.worth_keeping == ()
    assert "pasted" in [each.reason for each in read.all]


@every_case("text", OWN)
def test_what_the_user_wrote_stays(text: str) -> None:
    assert without_pasted(text) == text
    assert len(read_statements(text).worth_keeping) >= 1


def test_what_stands_before_a_pasted_text_is_the_user_s() -> None:
    text = f"From now on answer in German. {MAIL}"
    assert [each.text for each in read_statements(text).worth_keeping] == ["From now on answer in German."]


def test_a_place_in_the_message_is_where_the_words_are() -> None:
    text = "Hello!\n> I prefer tea.\nAlways use tables\nfor rows of numbers."
    [found] = read_statements(text).worth_keeping
    said = text[found.start : found.start + len(found.text)]
    assert said.replace("\n", " ") == found.text == "Always use tables for rows of numbers."


TALES = [
    "I dreamt that I moved to Oslo.",
    "In my dream I worked at a bakery.",
    "In my novel the hero lives in Lisbon.",
    "我梦见我搬到奥斯陆了。",
    "梦里我在面包店上班，有三个孩子。",
    "我小说里的主角住在里斯本，只喝茶。",
]


@every_case("text", TALES)
def test_what_somebody_dreamt_or_made_up_states_nothing(text: str) -> None:
    assert read_statements(text).worth_keeping == ()


@every_case(
    "text",
    [
        "I dreamt of a bear last night. I prefer short answers.",
        "I had a dream job at Philips. I prefer short answers.",
        "昨晚梦到一头熊。我更喜欢简短的回答。",
    ],
)
def test_what_follows_a_tale_is_the_user_s_own(text: str) -> None:
    last = read_statements(text).worth_keeping[-1].text
    assert last.startswith("I prefer") or "我更喜欢" in last


@given(st.text(alphabet="ab:>\n ：我。?", max_size=80))
def test_places_never_move(text: str) -> None:
    own = without_pasted(text)
    assert len(own) == len(text)
    assert all(a in (b, " ") for a, b in zip(own, text, strict=True))


PIECES = [
    *[
        "Translate",
        "Please proofread",
        "Fix",
        "this mail",
        "the following",
        "below",
        "Here is",
        "said",
        "it means",
        "forwarded message",
        "got this",
    ],
    *[
        "翻译",
        "帮我改写",
        "解释",
        "这段话",
        "下面",
        "如下",
        "转发",
        "写的",
        "意思",
        "----",
        ": ",
        "：",
        "\n",
        "\n\n",
        ". ",
        "。",
        "? ",
        "？",
        ", ",
        " ",
        "I live in Rome",
    ],
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_what_opens_a_pasted_text_has_one_of_the_signs_that_are_looked_for_first(text: str) -> None:
    words = lexicon("pasted")
    assert words["goes_on"].search(text) or not words["opens"].search(text)


def test_texts_that_are_pasted_after_an_opening_are_many() -> None:
    assert sum(lexicon("pasted")["opens"].search(text) is not None for text in PASTED) > len(PASTED) // 3
