"""The second reader: asked only where no rule has a verdict, and it says what it went by."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.minilm import MiniLM
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Matrix
from supervisor_memory.errors import EmbeddingError
from supervisor_memory.understand import learned
from supervisor_memory.understand.sense import sense_of
from supervisor_memory.understand.statements import believed, judge, normal, read_statements
from tests import programs
from tests.cases import every_case

STATED_WITHOUT_A_RULE = [
    "The Kiel branch closes at five on Fridays.",
    "季度报告里的金额都写到万元。",
]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with SupervisorMemory(settings=Settings(backend="in_memory")) as memory:
        yield memory


@pytest.mark.slow
def test_the_weights_are_what_their_lines_train() -> None:
    programs.run("benchmarks/sentences.py", "--check", timeout=300, check=True)


@pytest.mark.parametrize("text", STATED_WITHOUT_A_RULE)
def test_a_statement_no_rule_knows_is_kept_and_says_what_weighed(memory: SupervisorMemory, text: str) -> None:
    assert judge(text).reason == "none"
    memory.add([{"role": "user", "content": text}], user_id="ada")
    (record,) = memory.get_all(user_id="ada")
    told = record.metadata["extracted"]
    assert record.content == text
    assert told["by"] == "learned"
    assert told["rule"] in ("learned-wish", "learned-fact")
    assert told["confidence"] >= learned.weights().least
    assert told["marks"]
    assert all(piece in normal(text).lower() for mark in told["marks"] for piece in mark.split())


def test_a_statement_before_a_request_is_kept_without_the_request(memory: SupervisorMemory) -> None:
    said = "The Kiel branch closes at five on Fridays, can you fix the list?"
    memory.add([{"role": "user", "content": said}], user_id="ada")
    (record,) = memory.get_all(user_id="ada")
    assert "Kiel" in record.content
    assert "list" not in record.content


def test_a_list_of_tasks_states_nothing_by_its_words_alone(memory: SupervisorMemory) -> None:
    memory.add("1. 收集客运数据\n2. 画图\n3. 写总结", user_id="ada")
    memory.add("1. Collect passenger data\n2. Plot it\n3. Write a summary", user_id="ada")
    assert memory.get_all(user_id="ada") == []
    memory.add("1. I prefer tables.\n2. My office is in Porto.", user_id="ada")
    assert len(memory.get_all(user_id="ada")) == 2


@given(st.text(max_size=300))
def test_a_verdict_of_the_rules_stands(text: str) -> None:
    for each in read_statements(text).all:
        ruled = judge(each.text)
        if each.reason == "pasted":  # what was pasted, not a sentence
            continue
        if each.is_learned:
            assert ruled.reason == "none"
        else:
            assert (each.kind, each.reason) == (ruled.kind, ruled.reason)


@given(st.text(max_size=300))
def test_any_text_has_chances(text: str) -> None:
    found = learned.weigh(text, learned.weights())
    assert 0 <= found.chance <= 1
    assert 0 <= found.wish <= 1


def test_weights_add_up_to_a_chance_by_the_logistic_function() -> None:
    weights = learned.Weights(0.5, frozenset({"bring"}), {"": (-1.0, 0.0), "bring": (2.0, 3.0)})
    found = learned.weigh("Bring it", weights)
    assert found.chance == pytest.approx(0.7311, abs=1e-4)
    assert found.wish == pytest.approx(0.9526, abs=1e-4)
    assert found.marks == ("bring",)
    assert learned.weigh("Take it", weights).marks == ()


class _Watched(MiniLM):
    """MiniLM that tells what it was asked for, and fails if it is to."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self._fails = fails
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.calls.append(list(texts))
        if self._fails:
            raise EmbeddingError(f"no memory left for {texts}")
        return super().embed_documents(texts)


SETTINGS = Settings(backend="in_memory")
LASTING, PASSING = (
    "Our Kiel branch answers the phone in Danish too.",
    "The printer on the third floor beeps again.",
)


@every_case("model", [MINILM, E5])
def test_an_embedder_it_was_trained_with_has_a_say_and_others_have_none(model: str) -> None:
    embedder = open_embedder(model, dimension=None)
    assert embedder is not None
    sense = sense_of(embedder.fingerprint)
    assert sense is not None
    lasting, passing = (
        sense.again(learned.weigh(text, learned.weights()), embedder.embed_documents([text])[0])
        for text in (LASTING, PASSING)
    )
    assert lasting.chance > passing.chance
    assert lasting.is_lasting == (lasting.chance >= sense.least)
    assert sense_of("another-model@1/384") is None
    assert sense_of(f"{embedder.fingerprint.partition('@')[0]}@1/64") is None


def test_words_alone_decide_where_the_embedder_fails() -> None:
    settings = Settings(backend="in_memory")
    with SupervisorMemory(settings, embedder=_Watched(fails=True)) as memory:
        memory.add([{"role": "user", "content": STATED_WITHOUT_A_RULE[0]}], user_id="ada")
        (record,) = memory.get_all(user_id="ada")
    with SupervisorMemory(Settings(backend="in_memory", embedding_model="none")) as bare:
        bare.add([{"role": "user", "content": STATED_WITHOUT_A_RULE[0]}], user_id="ada")
        (same,) = bare.get_all(user_id="ada")
    assert record.metadata["extracted"] == same.metadata["extracted"]
    with SupervisorMemory(SETTINGS, embedder=_Watched()) as whole:
        whole.add([{"role": "user", "content": STATED_WITHOUT_A_RULE[0]}], user_id="ada")
        (weighed,) = whole.get_all(user_id="ada")
    assert weighed.metadata["extracted"]["confidence"] != record.metadata["extracted"]["confidence"]


def test_the_vector_of_a_sentence_that_is_kept_is_made_once() -> None:
    watched = _Watched()
    with SupervisorMemory(SETTINGS, embedder=watched) as memory:
        memory.add([{"role": "user", "content": STATED_WITHOUT_A_RULE[0]}], user_id="ada")
        (record,) = memory.get_all(user_id="ada")
        assert [text for call in watched.calls for text in call].count(record.content) == 1
        (hit,) = memory.search(STATED_WITHOUT_A_RULE[0], user_id="ada")
    assert hit.parts["sim"] == pytest.approx(1, abs=0.01)


def test_the_sentences_of_a_message_go_to_the_embedder_in_one_call_of_twenty_at_most() -> None:
    watched = _Watched()
    told = " ".join(f"Our branch number {n} answers the phone in Danish too." for n in range(25))
    with SupervisorMemory(SETTINGS, embedder=watched) as memory:
        memory.add([{"role": "user", "content": told}], user_id="ada", session_id="s")
    asked = [call for call in watched.calls if all("branch number" in text for text in call)]
    assert len(asked[0]) == 20


DOUBTED = [
    "我这边VPN刚断，又连上了。",
    "I always cry at that scene.",
]


@pytest.mark.parametrize("text", DOUBTED)
def test_what_the_rules_would_keep_is_held_back_where_the_second_reader_doubts_it(
    memory: SupervisorMemory, text: str
) -> None:
    assert judge(text).kind is not None
    (stated,) = (each for each in read_statements(text).all if each.kind is not None)
    assert stated.learned is not None
    assert stated.learned.is_doubtful
    memory.add([{"role": "user", "content": text}], user_id="ada")
    assert memory.get_all(user_id="ada") == []
    (row,) = memory.backend.audit.tail(9, op="skip")
    assert "doubted" in row.event["reason"]


@pytest.mark.parametrize("text", DOUBTED)
def test_what_is_written_or_announced_is_not_doubted(memory: SupervisorMemory, text: str) -> None:
    memory.write(text, user_id="ada")
    assert [record.content for record in memory.get_all(user_id="ada")] == [text]
    lead = "请记住：" if text[0] > "z" else "Please remember: "
    (found,) = read_statements(lead + text).worth_keeping
    assert believed(found).kind is not None


DEFINED = {
    MINILM: [
        "By churn we mean customers without an order for 90 days.",
        "We define churn as 90 days without an order.",
        "In our reports we define a visit as anything over ten seconds.",
        "When I say late, I mean more than 15 minutes.",
    ],
    E5: [
        "我们说的流失指90天没有下单的客户。",
        "在我们组里，我们把流失定义为90天没有下单。",
        "咱们把三个月没来的叫沉睡会员。",
    ],
}


@every_case("model", [MINILM, E5])
def test_what_the_user_means_by_a_word_is_not_doubted(model: str) -> None:
    with SupervisorMemory(SETTINGS, embedder=open_embedder(model, dimension=None)) as memory:
        for text in DEFINED[model]:
            memory.add([{"role": "user", "content": text}], user_id=text)
            assert [record.content for record in memory.get_all(user_id=text)] == [text]


@every_case(
    "text",
    [
        "The competitor defines churn as 30 days.",
        "Here's the competitor's FAQ: we define a trial as any signup, card or no card.",
        "竞品手册里把“活跃保户”定义成半年内登录过App的人。",
    ],
)
def test_what_others_mean_by_a_word_may_be_doubted(text: str) -> None:
    (found,) = read_statements(text).worth_keeping
    assert found.learned is not None


@every_case(
    "text",
    [
        "Let's say our fiscal year starts in July.",
        "Pretend churn means ten days without a visit and give me the count.",
        "Assume that we count weekends from now on.",
        "假装退货算销售，以后都这样算。",
        "比方说我们的财年从七月开始。",
    ],
)
def test_what_is_only_supposed_is_no_statement(text: str) -> None:
    assert [(each.kind, each.reason) for each in read_statements(text).all] == [(None, "hypothetical")]


@every_case("text", ["If a query would scan more than 100 GB, ask me first.", "如果超过一百G，先问我。"])
def test_a_wish_for_a_case_is_not_supposed(text: str) -> None:
    assert judge(text).reason != "hypothetical"


@every_case(
    "text",
    [
        "Rob reckons pie charts should always be banned.",
        "My sister insists on short answers from now on.",
        "小陈觉得以后都该用折线图。",
    ],
)
def test_what_somebody_else_thinks_is_theirs(text: str) -> None:
    assert [each.reason for each in read_statements(text).all] == ["reported"]


@every_case(
    "text",
    [
        "Translate into Dutch: I prefer to pay by invoice. I live in Ghent.",
        "Please proofread this: From now on I want tables.",
        "翻成英文：我喜欢开发票付款。我住在绵阳。",
        "帮我润色：以后请都用表格。",
    ],
)
def test_a_text_to_be_worked_on_states_nothing(text: str) -> None:
    assert read_statements(text).worth_keeping == ()


def test_a_wish_about_such_work_is_one() -> None:
    (found,) = read_statements("以后翻译成英文：标题别翻。").worth_keeping
    assert found.kind == "user-profile"
