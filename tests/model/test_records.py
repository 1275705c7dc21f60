"""Names, contents and filters: what may enter, and what counts as the same."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.errors import (
    ContentTooLarge,
    InvalidContent,
    InvalidName,
    MissingUser,
    SupervisorMemoryError,
)
from supervisor_memory.model.records import (
    MAX_CONTENT_BYTES,
    SESSION_FAMILY,
    Filter,
    Hit,
    Hits,
    Record,
    Scope,
    check_content,
    check_name,
    content_hash,
    family_for,
    new_id,
    parts_of_message,
)
from tests.cases import every_case


def record(content: str = "likes tea", *, user: str = "u1", family: str = "user_profile") -> Record:
    return Record(
        id=new_id(),
        namespace=(family, user),
        content=content,
        kind="user-profile",
        created_at=0,
        updated_at=0,
    )


@every_case("nobody", [None, "", " ", "\t", "null", "undefined", "None", 0, b"u1"])
def test_no_user_is_an_error_and_never_a_shared_bucket(nobody: object) -> None:
    with pytest.raises(MissingUser, match="user id"):
        Scope(nobody)  # type: ignore[arg-type]


@every_case(
    "lookalike",
    [
        "u1 ",
        " u1",
        "u\u200b1",
        "u\x001",
        "u\n1",
        "\u212a",
        "e\u0301",
        "u\ud800",
        "\u202eu1",
        "u" * 129,
        "\ufeffu1",
    ],
)
def test_a_user_id_that_could_pass_for_another_is_refused(lookalike: str) -> None:
    with pytest.raises(InvalidName, match="user id"):
        Scope(lookalike)


@every_case("name", ["ada@example.com", "a.b.c", "用户一", "１", "K", "user/1", "%", "*", "../x"])
def test_any_honest_name_is_a_user_id(name: str) -> None:
    assert Scope(name).user_id == name


@given(st.text())
def test_a_name_is_either_taken_as_it_is_or_refused_with_an_error_of_ours(text: str) -> None:
    try:
        taken = check_name(text, what="user id")
    except SupervisorMemoryError as error:
        refusal = str(error)
    else:
        refusal = ""
        assert taken == text
    assert not refusal or "user id" in refusal


@every_case("empty", ["", " \n", "\u200b\u200d", "\ufeff"])
def test_content_with_nothing_visible_is_refused(empty: str) -> None:
    with pytest.raises(InvalidContent, match="nothing visible"):
        check_content(empty)


@every_case("control", ["a\x00b", "a\x1b[31mb", "a\x7f", "a\ud800"])
def test_content_with_control_characters_is_refused(control: str) -> None:
    with pytest.raises(InvalidContent, match="control character"):
        check_content(control)


def test_ten_megabytes_are_refused_and_not_cut() -> None:
    with pytest.raises(ContentTooLarge, match="10,485,760"):
        check_content("x" * 10 * 1024 * 1024)
    assert len(check_content("x" * MAX_CONTENT_BYTES)) == MAX_CONTENT_BYTES
    with pytest.raises(ContentTooLarge):
        check_content("口" * (MAX_CONTENT_BYTES // 3 + 1))


@every_case(
    ("first", "rest"),
    [
        ("a. " * 20_000 + "\n\n", "b. " * 20_000),
        ("第一句话说完了。" * 2_730, "这是另外的一句话，" + "口" * 9_000),
        ("é" * 32_768, "é" * 7),
        ("x" * MAX_CONTENT_BYTES, "\u200b \n" * 40_000 + "y"),
    ],
)
def test_a_long_message_is_cut_after_a_paragraph_a_sentence_or_a_character(first: str, rest: str) -> None:
    parts = parts_of_message(first + rest)
    assert parts[0] == first.strip()
    assert "".join(parts[1:]).replace("\u200b", "").split() == rest.replace("\u200b", "").split()
    assert all(check_content(part) == part for part in parts)


def test_content_is_kept_in_nfc() -> None:
    assert check_content("cafe\u0301 ") == "caf\u00e9"


@every_case(
    ("one", "other"),
    [
        ("Likes tea.", "likes  tea"),
        ("延误超过１５分钟", "延误超过15分钟。"),
        ("a\u200bb", "ab"),
        ("CAFÉ", "café"),
    ],
)
def test_texts_that_read_the_same_have_one_hash(one: str, other: str) -> None:
    assert content_hash(one) == content_hash(other)


def test_texts_that_differ_in_a_number_have_two_hashes() -> None:
    assert content_hash("over 15 minutes") != content_hash("over 16 minutes")


def test_the_family_is_chosen_by_kind_and_agent() -> None:
    assert family_for("domain-facts") == "domain_facts"
    assert family_for("task-traces", "analysis") == "analysis_memories"
    assert family_for("user-profile", "analysis") == "user_profile"
    assert family_for("tool-effects", "text2sql", {"text2sql": "sql_notes"}) == "sql_notes"


def test_a_record_survives_json() -> None:
    one = replace(record(), metadata={"a": [1, None]}, tags=("x",), subject="tea", attribute="taste")
    assert Record.from_dict(one.to_dict()) == one


def test_session_messages_match_only_filters_that_name_them() -> None:
    said = record(family=SESSION_FAMILY)
    assert not Filter(user_id="u1").matches(said)
    assert Filter(user_id="u1", families=(SESSION_FAMILY,)).matches(said)
    assert Filter(ids=(said.id,)).matches(said)


def test_a_task_segment_isolates() -> None:
    plain, tasked = record(), replace(record(), namespace=("user_profile", "u1", "t1"))
    outside, inside, elsewhere = Scope("u1"), Scope("u1", task="t1"), Scope("u1", task="t2")
    seen = [
        [Filter(user_id="u1", tasks=s.tasks).matches(r) for r in (plain, tasked)]
        for s in (outside, inside, elsewhere)
    ]
    assert seen == [[True, False], [True, True], [True, False]]


def test_hits_are_a_sequence_that_keeps_its_flags() -> None:
    hits = Hits((Hit(record("a")), Hit(record("b"))), degraded=True, notes=("n",))
    assert len(hits) == 2
    assert hits[0].record.content == "a"
    assert hits[:1].degraded
    assert [hit.record.content for hit in hits[1:]] == ["b"]
