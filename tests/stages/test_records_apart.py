"""Unlike things stay unlike records: labels, codes, measures and queries join nothing; tasks have names."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM
from supervisor_memory.model.records import Record
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from tests.breadth import size
from tests.cases import every_case

AIRPORTS = ("JFK", "LGA", "EWR")
MONTHS = ("January", "April", "July", "October", "December")
MEASURES = (
    ("the average arrival delay", "minutes"),
    ("the share of cancelled flights", "percent"),
    ("the number of departures", "flights"),
)
FINDINGS = [
    f"In {month} {measure} at {airport} came to {number * 7 + 11} {unit}."
    for number, (airport, month, (measure, unit)) in enumerate(product(AIRPORTS, MONTHS, MEASURES))
][:39]
"""39 conclusions, each of another airport, month or measure than all others."""
ZH_FINDINGS = [
    f"{month}月{airport}的{measure}是{number * 7 + 11}{unit}。"
    for number, (airport, month, (measure, unit)) in enumerate(
        product(
            AIRPORTS, (1, 4, 7, 10, 12), (("平均到达延误", "分钟"), ("航班取消率", "%"), ("出发航班数", "架"))
        )
    )
][:39]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model="none"), clock=FixedClock()) as memory:
        yield memory


def concluded(
    memory: SupervisorMemory, conclusions: Iterable[str], *, task: str | None = None, said: str = ""
) -> None:
    """One turn for each conclusion, in a session of its own, as the analyst's answer."""
    for turn, text in enumerate(conclusions):
        memory.services.clock.now += 60  # type: ignore[attr-defined]
        scope = Scope("ada", "analyst", f"s{turn}", f"r{turn}", task)
        heard = [HumanMessage(said, id=f"m{turn}")] if said else []
        if heard:
            memory.remember(heard, replace(scope, agent_id=None), turn_id=f"m{turn}")
        memory.remember((), scope, outcome=Outcome(final_answer=text), turn_id=f"m{turn}")


def held(memory: SupervisorMemory, kind: str = "task-traces", task: str | None = None) -> list[str]:
    return [each.content for each in records_of(memory, task) if each.kind == kind]


def records_of(memory: SupervisorMemory, task: str | None = None) -> list[Record]:
    """The active records of one task, or of none."""
    of_task = (task,) if task else ()
    return [each for each in memory.get_all(user_id="ada", limit=1_000) if each.namespace[2:] == of_task]


# Labels and codes are no names of tasks

LABELS_TAKEN_FOR_TASKS = [
    "Summary: {}",
    "Answer: {}",
    "Conclusion: {}",
    "**Summary:** {}",
    "Final answer: {}",
    "Key finding: {}",
    "Note: {}",
    "(estimated) {}",
    "{} (estimated)",
    "{} (see the table above)",
    "Flight analysis (NYC): {}",
    "From the analyst: {}",
    "Encoded in UTF-8: {}",
    "{} The file is encoded in UTF-8.",
    "{} That was before COVID-19.",
    "{} Dates follow ISO-8601.",
    "{} The text was checked by GPT-4.",
    "{} All files were hashed with SHA-256.",
    '{} The query was "flights by month".',
]
OTHER_LABELS = ["TL;DR: {}", "### Result\n{}", "[Summary] {}", "[draft] {}", "{} [1]"]
ZH_LABELS_TAKEN_FOR_TASKS = [
    "结论：{}",
    "总结：{}",
    "最终答案：{}",
    "**结论**：{}",
    "（估算）{}",
    "{}（估算值）",
    "{}（见上表）",
    "数据分析师：{}",
    "{}文件编码为UTF-8。",
    "{}这是COVID-19之前的数据。",
]
OTHER_ZH_LABELS = ["【分析结果】{}", "「初步」{}"]


@pytest.mark.one_in(10)
@pytest.mark.parametrize(
    "label",
    [
        *LABELS_TAKEN_FOR_TASKS,
        *OTHER_LABELS,
    ],
)
def test_conclusions_under_one_label_are_as_many_records(memory: SupervisorMemory, label: str) -> None:
    concluded(memory, [label.format(finding) for finding in FINDINGS])
    kept = held(memory)
    assert len(kept) == 39
    assert all(any(finding in text for text in kept) for finding in FINDINGS)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "label",
    [
        *ZH_LABELS_TAKEN_FOR_TASKS,
        *OTHER_ZH_LABELS,
    ],
)
def test_chinese_conclusions_under_one_label_are_as_many_records(
    memory: SupervisorMemory, label: str
) -> None:
    concluded(memory, [label.format(finding) for finding in ZH_FINDINGS])
    kept = held(memory)
    assert len(kept) == 39
    assert all(any(finding in text for text in kept) for finding in ZH_FINDINGS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("findings", "embedder"), [(FINDINGS, MINILM), (ZH_FINDINGS, E5)], ids=["en", "zh"])
def test_vectors_join_no_conclusions_of_one_label(findings: list[str], embedder: str) -> None:
    label = "Summary: {}" if findings is FINDINGS else "结论：{}"
    with SupervisorMemory(Settings(embedding_model=embedder), clock=FixedClock()) as memory:
        concluded(memory, [label.format(finding) for finding in findings])
        assert len(held(memory)) == 39


@pytest.mark.parametrize("label", ["Summary: {}", "{} (estimated)", "{} The file is encoded in UTF-8."])
def test_notes_of_one_label_written_by_hand_are_as_many_records(memory: SupervisorMemory, label: str) -> None:
    for finding in FINDINGS:
        memory.write(label.format(finding), user_id="ada", kind="task-traces")
    assert len(held(memory)) == 39


def test_conclusions_without_a_label_are_as_many_records(memory: SupervisorMemory) -> None:
    concluded(memory, FINDINGS)
    assert sorted(held(memory)) == sorted(FINDINGS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "said", ["How did COVID-19 change that?", "Is the export in UTF-8?", "它是UTF-8吗？"]
)
def test_a_code_in_the_users_question_names_no_task(memory: SupervisorMemory, said: str) -> None:
    concluded(memory, FINDINGS, said=said)
    assert len(held(memory)) == 39


def test_a_key_that_the_agent_alone_mentions_names_no_task(memory: SupervisorMemory) -> None:
    concluded(memory, [f"{finding} Compare that with AIR-12." for finding in FINDINGS])
    assert len(held(memory)) == 39


def test_the_same_conclusion_again_is_no_second_record(memory: SupervisorMemory) -> None:
    concluded(memory, [f"Summary: {FINDINGS[0]}"] * 3)
    assert len(held(memory)) == 1


# Different measures and subjects

TWO_TAKEN_FOR_ONE = [
    ("The mean fare is 200 dollars.", "The mean distance is 900 miles."),
    ("The mean arrival delay is 7 minutes.", "The mean taxi time is 16 minutes."),
    ("The mean temperature is 21 degrees.", "The mean pressure is 1013 hectopascals."),
    ("The mean of the fares is 200 dollars.", "The mean of the distances is 900 miles."),
    ("The mean salary is 4,000 euros.", "The mean bonus is 300 euros."),
    ("Dashboard Z is fed by table X.", "Table X gets rebuilt by job Y."),
    ("The revenue dashboard is fed by orders_daily.", "orders_daily gets rebuilt by the nightly job."),
    ("The nightly export is read by Tableau.", "The nightly export is written by Airflow."),
    ("Invoices are approved by Finance.", "Finance gets the invoices from SAP."),
    ("营收看板由orders_daily供数。", "orders_daily由夜间任务重建。"),
]
TWO_THINGS = [
    ("The median delay is 12 minutes.", "The median fare is 80 dollars."),
    ("The total weight is 40 tons.", "The total volume is 90 cubic metres."),
    ("The minimum stay is two nights.", "The minimum age is 18 years."),
    ("The range of the drone is 8 km.", "The weight of the drone is 900 grams."),
    ("The orders table is owned by the sales team.", "The sales team is led by Dana."),
    ("The cache is filled by the loader.", "The loader gets restarted by cron."),
    ("The forecast is trained on Mondays.", "The forecast is published on Tuesdays."),
    ("平均票价是200美元。", "平均里程是900英里。"),
    ("平均气温是21度。", "平均气压是1013百帕。"),
    ("延误的中位数是12分钟。", "票价的中位数是80美元。"),
    ("最低年龄是18岁。", "最低住宿是两晚。"),
    ("总重量是40吨。", "总体积是90立方米。"),
    ("看板Z的数据来自表X。", "表X由任务Y重建。"),
    ("夜间导出由Tableau读取。", "夜间导出由Airflow写入。"),
    ("订单表由销售部维护。", "销售部由王芳负责。"),
    ("缓存由加载器填充。", "加载器由cron重启。"),
]
BACK_AND_FORTH = (
    "Report on DFW-EWR of March is in reports/dfw_ewr_846.csv.",
    "Report on EWR-DFW of May is in reports/ewr_dfw_2979.csv.",
)


def known_after(texts: Iterable[str], embedder: str, *, said: bool = False) -> list[str]:
    with SupervisorMemory(Settings(embedding_model=embedder), clock=FixedClock()) as memory:
        for number, text in enumerate(texts):
            if said:
                memory.remember(f"Remember that {text}", Scope("ada", session_id=f"s{number}"))
            else:
                memory.write(text, user_id="ada")
        return sorted(record.content for record in memory.get_all(user_id="ada"))


def reader_of(text: str) -> str:
    return MINILM if text.isascii() else E5


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "texts",
    [
        *TWO_TAKEN_FOR_ONE,
        *TWO_THINGS,
    ],
)
def test_another_measure_or_subject_replaces_nothing(texts: tuple[str, str]) -> None:
    for embedder in ("none", reader_of(texts[0])):
        assert known_after(texts, embedder) == sorted(texts)
        assert known_after(reversed(texts), embedder) == sorted(texts)


@every_case(
    "embedder",
    ["none", MINILM],
)
def test_the_way_back_is_another_report(embedder: str) -> None:
    assert known_after(BACK_AND_FORTH, embedder) == sorted(BACK_AND_FORTH)


def test_what_the_user_says_of_two_measures_stays_apart() -> None:
    known = known_after(
        ("the mean fare is 200 dollars.", "the mean distance is 900 miles."), "none", said=True
    )
    assert len(known) == 2
    assert "200 dollars" in " ".join(known)
    assert "900 miles" in " ".join(known)


@every_case(
    ("old", "new"),
    [
        ("The mean fare is 200 dollars.", "The mean fare is 250 dollars now."),
        ("Dashboard Z is fed by table X.", "Dashboard Z is now fed by table W."),
        ("平均票价是200美元。", "平均票价现在是250美元。"),
    ],
)
def test_a_new_value_of_the_same_measure_still_takes_its_place(old: str, new: str) -> None:
    assert known_after((old, new), reader_of(old)) == [new]


def test_a_definition_by_mean_is_still_one() -> None:
    known = known_after(("By GMV we mean gross sales.", "By GMV we mean gross sales without tax."), "none")
    assert len(known) == 1
    assert "without tax" in known[0]


# SQL

SHORT = "SELECT avg(arr_delay) FROM flights WHERE origin = '{airport}' AND month = {month}"
LONG = """
SELECT carrier, COUNT(*) AS flights, ROUND(AVG(arr_delay), 1) AS average_delay,
       ROUND(100.0 * SUM(arr_delay > 15) / COUNT(*), 1) AS delayed_percent
FROM flights
WHERE origin = '{airport}' AND year = 2013 AND month = {month} AND arr_delay IS NOT NULL
GROUP BY carrier
HAVING COUNT(*) >= 100
ORDER BY delayed_percent DESC, carrier
LIMIT 10
"""
QUERIES = {
    "short": [SHORT.format(airport=a, month=m) for a, m in product(AIRPORTS, (6, 7, 8))],
    "long": [LONG.format(airport=a, month=m) for a, m in product(AIRPORTS, (6, 7, 8))],
    "tables": [
        f"SELECT origin, count(*) FROM {table} GROUP BY origin ORDER BY origin"
        for table in (
            "flights",
            "flights_2013",
            "flights_2014",
            "cancelled",
            "planes",
            "weather",
            "delays",
            "legs",
        )
    ],
    "columns": [
        f"SELECT origin, avg({column}) FROM flights GROUP BY origin"
        for column in (
            *("arr_delay", "dep_delay", "air_time", "distance"),
            *("taxi_in", "taxi_out", "seats", "fare"),
        )
    ],
    "limits": [
        f"SELECT dest, sum(seats) AS s FROM flights GROUP BY dest ORDER BY s DESC LIMIT {n}"
        for n in (1, 3, 5, 10, 20, 25, 50, 100)
    ],
    "thresholds": [
        f"SELECT count(*) FROM flights WHERE arr_delay {sign} {minutes}"
        for sign, minutes in product((">", ">=", "<", "<="), (15, 30))
    ],
}
AGAIN = [LONG.format(airport="JFK", month=6)] * 4


def kept_of(queries: Sequence[str], embedder: str = "none") -> list[str]:
    """The queries that are left as records of what an agent did, each of a turn of its own."""
    with SupervisorMemory(Settings(embedding_model=embedder), clock=FixedClock()) as memory:
        for turn, sql in enumerate(queries):
            scope = Scope("ada", "text2sql", f"s{turn}", f"r{turn}")
            did = Outcome(side_effects=({"type": "sql", "sql": sql},))
            memory.remember((), scope, outcome=did, turn_id=f"m{turn}")
        return [flat(f"{each.content} {each.metadata.get('sql')}") for each in records_of(memory)]


@pytest.fixture(scope="module")
def kept_without_sqlglot() -> dict[str, list[str]]:
    """What a process without sqlglot keeps of each list; a module once imported does not go away."""
    code = (
        "import json, sys; sys.modules['sqlglot'] = None\n"
        "from tests.stages.test_records_apart import AGAIN, QUERIES, kept_of\n"
        "print(json.dumps({name: kept_of(each) for name, each in {**QUERIES, 'again': AGAIN}.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    kept: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return kept


def flat(text: str) -> str:
    return " ".join(text.split())


def assert_each_is_kept(queries: Sequence[str], kept: Sequence[str]) -> None:
    assert len(kept) == len(queries)
    assert all(any(flat(query) in text for text in kept) for query in queries)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("embedder", ["none", MINILM])
@pytest.mark.parametrize(
    "what",
    [
        *QUERIES,
    ],
)
def test_another_literal_table_or_column_is_another_query(what: str, embedder: str) -> None:
    assert_each_is_kept(QUERIES[what], kept_of(QUERIES[what], embedder))


@pytest.mark.parametrize(
    "what",
    [
        *QUERIES,
    ],
)
def test_without_sqlglot_another_query_is_another_record_too(
    what: str, kept_without_sqlglot: dict[str, list[str]]
) -> None:
    assert_each_is_kept(QUERIES[what], kept_without_sqlglot[what])


def test_the_same_query_again_is_one_record(kept_without_sqlglot: dict[str, list[str]]) -> None:
    assert len(kept_of(AGAIN)) == len(kept_without_sqlglot["again"]) == 1


def test_with_sqlglot_the_same_query_in_another_layout_is_one_record() -> None:
    query = flat(QUERIES["long"][0])
    assert (
        len(kept_of([QUERIES["long"][0], query, query.replace("SELECT", "select").replace("FROM", "from")]))
        == 1
    )


# A task that has a name


def lines_of(memory: SupervisorMemory, record_id: str) -> str:
    return "\n".join(version.content for version in memory.history(record_id))


def test_what_is_concluded_under_a_task_of_the_host_is_one_record_that_grows(
    memory: SupervisorMemory,
) -> None:
    concluded(memory, FINDINGS[:4], task="delays")
    concluded(memory, FINDINGS[4:6], task="fares")
    [delays], [fares] = held(memory, task="delays"), held(memory, task="fares")
    assert all(finding in delays for finding in FINDINGS[:4])
    assert all(finding in fares for finding in FINDINGS[4:6])
    assert not any(finding in delays for finding in FINDINGS[4:6])


@pytest.mark.parametrize(
    "said",
    ["Go on with ticket AIR-12.", "AIR-12: what is new?", "请继续处理工单AIR-12。", "继续 AIR-12，谢谢"],
)
def test_what_is_concluded_under_an_issue_key_of_the_user_is_one_record(
    memory: SupervisorMemory, said: str
) -> None:
    concluded(memory, FINDINGS[:4], said=said)
    concluded(memory, FINDINGS[4:6], said=said.replace("AIR-12", "AIR-21"))
    kept = held(memory)
    assert len(kept) == 2
    for part in (FINDINGS[:4], FINDINGS[4:6]):
        assert any(all(finding in text for finding in part) for text in kept)


def test_a_task_that_goes_on_for_ever_is_bounded_and_its_past_is_in_its_history() -> None:
    texts = [
        f"Step {n}: table_{n} was joined with customers_{n}, {n * 37} rows came out." for n in range(120)
    ]
    with SupervisorMemory(Settings(embedding_model="none", compact_over={}), clock=FixedClock()) as memory:
        concluded(memory, texts[:60], task="joins")
        [half] = records_of(memory, "joins")
        concluded(memory, texts[60:], task="joins")
        [whole] = records_of(memory, "joins")
        assert whole.id == half.id
        assert texts[-1] in whole.content
        assert len(whole.content.encode()) <= 1.5 * len(half.content.encode())
        assert whole.content.count("\n") <= 1.5 * half.content.count("\n") + 2
        past = lines_of(memory, whole.id)
        assert all(text in past for text in texts)


def test_the_newest_of_a_long_task_still_fits_a_note() -> None:
    with SupervisorMemory(Settings(embedding_model="none", compact_over={}), clock=FixedClock()) as memory:
        texts = [f"Step {n}: table_{n} was joined with customers_{n}, {n} rows came out." for n in range(150)]
        concluded(memory, texts, task="joins")
        note = memory.recall(
            "which table was joined in step 149?", Scope("ada", "analyst", "later", task="joins")
        )
        assert "table_149 was joined" in note.text


def test_a_few_long_steps_are_bounded_too(memory: SupervisorMemory) -> None:
    words = " ".join(f"column_{n} has {n} gaps," for n in range(60))
    for step in range(30):
        memory.write(
            f"Step {step} found that {words} and {step * 11} rows.",
            user_id="ada",
            kind="task-traces",
            task="gaps",
        )
    records = records_of(memory, "gaps")
    assert max(len(record.content.encode()) for record in records) <= 16 * 1024
    assert "Step 29 found" in " ".join(record.content for record in records)


def size_after(directory: Path, count: int, *, append: bool) -> int:
    """Bytes of the store's files after that many steps of one task, or of none."""
    directory.mkdir()
    settings = Settings(embedding_model="none", forget="manual", keep_messages=False)
    with SupervisorMemory(settings, backend=SqliteBackend(directory), clock=FixedClock()) as memory:
        padding = "and nothing else of note was seen in that part of the data, as far as it could be read"
        texts = [f"Step {n}: table_{n} lost {n * 37} rows, {padding}." for n in range(count)]
        if append:
            first = memory.write(texts[0], user_id="ada", kind="task-traces").id
            for text in texts[1:]:
                memory.update(first, content=text, metadata={"strategy": "append"}, user_id="ada")
        else:
            for text in texts:
                memory.add_many([text], user_id="ada")
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def test_no_version_of_an_appended_record_stores_the_whole_text_again(tmp_path: Path) -> None:
    few = size_after(tmp_path / "few", size(40, less=20), append=True)
    some = size_after(tmp_path / "some", size(80, less=40), append=True)
    many = size_after(tmp_path / "many", size(160, less=80), append=True)
    assert many - some <= 3 * (some - few)
    apart = size_after(tmp_path / "apart", size(160, less=80), append=False)
    assert many <= 4 * apart


def test_a_store_grows_by_the_same_for_every_conclusion_of_one_task(tmp_path: Path) -> None:
    sizes: list[int] = []
    for count in (size(40, less=20), size(80, less=40), size(160, less=80)):
        directory = tmp_path / str(count)
        directory.mkdir()
        settings = Settings(embedding_model="none", forget="manual", keep_messages=False)
        with SupervisorMemory(settings, backend=SqliteBackend(directory), clock=FixedClock()) as memory:
            texts = [f"Step {n}: table_{n} lost {n * 37} rows. {'It was slow. ' * 20}" for n in range(count)]
            concluded(memory, texts, task="losses")
        sizes.append(sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()))
    assert sizes[2] - sizes[1] <= 3 * (sizes[1] - sizes[0])


def test_ten_thousand_bytes_changed_by_a_word_are_not_stored_anew(tmp_path: Path) -> None:
    settings = Settings(embedding_model="none", forget="manual")
    text = "\n".join(f"Column {n} holds the {n * 7}th figure of the survey." for n in range(200))
    with SupervisorMemory(settings, backend=SqliteBackend(tmp_path), clock=FixedClock()) as memory:
        kept = memory.write(text, user_id="ada", kind="task-traces").id
        for number in range(100):
            line = f"Column {200 + number} is empty."
            memory.update(kept, content=line, metadata={"strategy": "append"}, user_id="ada")
    size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert size < 60 * len(text)


# A failing operator after the write


def failing(said: Any, _store: Any) -> Any:
    raise RuntimeError("the upkeep of the host is broken")


def test_an_operator_that_fails_after_the_write_makes_no_write_raise() -> None:
    recipe = replace(DEFAULT, post_insert=(*DEFAULT.post_insert, failing))
    with SupervisorMemory(Settings(embedding_model="none"), recipe=recipe) as memory:
        written = memory.write("GMV means gross sales.", user_id="ada")
        assert (written.status, written.saved) == ("added", True)
        [added] = memory.add("Always answer in tables.", user_id="ada")
        assert (added.status, added.saved) == ("added", True)
        [verbatim] = memory.add_many(["the moon is up"], user_id="ada")
        assert verbatim.saved
        kept = memory.remember((), Scope("ada", "analyst"), outcome=Outcome(final_answer=FINDINGS[0]))
        assert [result.saved for result in kept] == [True]
        assert len(memory.get_all(user_id="ada")) == 4


def test_an_operator_that_fails_after_the_write_is_told_of_in_the_audit() -> None:
    recipe = replace(DEFAULT, post_insert=(failing,))
    with SupervisorMemory(Settings(embedding_model="none"), recipe=recipe) as memory:
        memory.remember((), Scope("ada", "analyst"), outcome=Outcome(final_answer=FINDINGS[0]))
        rows = [row.event for row in memory.backend.audit.tail(99)]
        assert [row["op"] for row in rows if row["outcome"] == "degraded"]
        assert [row["op"] for row in rows if row["op"] == "add"]


async def test_an_operator_that_fails_after_the_write_breaks_no_coroutine() -> None:
    recipe = replace(DEFAULT, post_insert=(failing,))
    with SupervisorMemory(Settings(embedding_model="none"), recipe=recipe) as memory:
        assert (await memory.awrite("GMV means gross sales.", user_id="ada")).saved
