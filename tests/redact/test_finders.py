"""What is found in a text, what is left alone, and that nothing else of it changes."""

import random
import re
import string
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_memory.errors import SettingsError
from supervisor_memory.redact.redactor import Redactor, open_redactor
from supervisor_memory.redact.spans import Span, merged
from tests.breadth import examples
from tests.cases import every_case
from tests.redact.samples import TYPES, canaries, harmless

ALL = open_redactor("all", "CN,US")


# --- found


@every_case("type_", TYPES)
def test_whatever_people_write_becomes_its_placeholder_and_nothing_else_changes(type_: str) -> None:
    missed = {c.text: ALL.text(c.text) for c in canaries(type_, 150) if ALL.text(c.text) != c.redacted}
    assert missed == {}


@every_case("type_", TYPES)
def test_each_type_is_found_by_itself(type_: str) -> None:
    alone = open_redactor("secrets" if type_ == "SECRET" else type_, "CN,US")
    missed = {c.text: alone.text(c.text) for c in canaries(type_, 60, seed=1) if c.told in alone.text(c.text)}
    assert missed == {}


def test_of_harmless_lines_less_than_one_in_a_hundred_is_touched() -> None:
    lines = harmless(1_500)
    touched = {line: ALL.text(line) for line in lines if ALL.text(line) != line}
    assert len(touched) < len(lines) / 100, touched


@every_case(
    ("text", "redacted"),
    [
        ("电话13800138000，邮箱a@b.cn", "电话[PHONE]，邮箱[EMAIL]"),
        ("１３８００１３８０００和ｚｈａｎｇ＠ｅｘａｍｐｌｅ．ｃｏｍ", "[PHONE]和[EMAIL]"),
        ("手机:13912345678/13812345678", "手机:[PHONE]/[PHONE]"),
        ("(0571)87654321转801", "[PHONE]转801"),
        ("phone (212) 736-5000 ext 12", "phone [PHONE] ext 12"),
        ("+44 (0)20 7946 0018", "[PHONE]"),
        ("持有身份证（11010119900307451X）的", "持有身份证（[CN_ID]）的"),
        ("Social Security Number: 123456789", "Social Security Number: [US_SSN]"),
        ("IBAN: FR14 2004 1010 0505 0001 3M02 606 and more", "IBAN: [IBAN] and more"),
        ("[2001:db8::1]:443 or 203.0.113.45:8080", "[[IP]]:443 or [IP]:8080"),
        ("10.0.0.0/8", "[IP]/8"),
        ('curl -u admin:hunter2 "https://x.example"', 'curl -u admin:[SECRET] "https://x.example"'),
        ("redis://:secretpw@10.0.0.5:6379/0", "redis://:[SECRET]@[IP]:6379/0"),
        ("mysql://root:p@ss1@db/x", "mysql://root:[SECRET]@db/x"),
        ("https://x.example/?token=abcdef123456&page=2", "https://x.example/?token=[SECRET]&page=2"),
        ("密码：Foo@123456。", "密码：[SECRET]。"),
        ("账号 admin 密码 admin888", "账号 admin 密码 [SECRET]"),
        ("my password's hunter2", "my password's [SECRET]"),
        ("passwort: hunter2, kennwort: geheim1", "passwort: [SECRET], kennwort: [SECRET]"),
        ("my pin is 4711, don't tell", "my pin is [SECRET], don't tell"),
        ("PIN码：471100，CVV: 123", "PIN码：[SECRET]，CVV: [SECRET]"),
        ("<bob.smith@corp.example.com>", "<[EMAIL]>"),
        ("mailto:jane@doe.org?subject=hi", "mailto:[EMAIL]?subject=hi"),
    ],
)  # fmt: skip
def test_what_stands_close_to_it_stays(text: str, redacted: str) -> None:
    assert ALL.text(text) == redacted


@pytest.mark.one_in(4)
@pytest.mark.parametrize("between", [",", "，", "、", "/", " ", "\n", ";", " | ", "\t"])
@pytest.mark.parametrize("type_", TYPES)
def test_a_long_list_goes_to_its_end(type_: str, between: str) -> None:
    told = [canary.told for canary in canaries(type_, 60, seed=3) if "\n" not in canary.told]
    if type_ == "SECRET":
        told = [each for each in told if not each.isascii() or ALL.text(each) != each]  # keys, not passwords
    redacted = ALL.text(between.join(told))
    assert [each for each in told if each in redacted] == []
    assert redacted.count(f"[{type_}]") > len(told) * 0.9


UNSEEN = [chr(c) for c in (*range(0x30000), *range(0xE0000, 0xE1000)) if unicodedata.category(chr(c)) == "Cf"]
UNSEEN += "\u034f\u115f\ufe0f"


@every_case("type_", TYPES)
def test_what_nobody_sees_hides_nothing(type_: str) -> None:
    rng = random.Random(7)
    missed = {}
    for canary in canaries(type_, 60, seed=5):
        places = sorted(rng.sample(range(1, len(canary.told)), k=2), reverse=True)
        told = canary.told
        for place in places:
            told = told[:place] + rng.choice(UNSEEN) + told[place:]
        text = f"{canary.before}{told}{canary.after}"
        if ALL.text(text) != canary.redacted:
            missed[ascii(text)] = ascii(ALL.text(text))
    assert missed == {}


def test_what_nobody_sees_between_two_numbers_joins_them_not() -> None:
    assert ALL.text("13900139000\u200b13700137000") == "[PHONE]\u200b[PHONE]"
    assert ALL.text("a family: 👨\u200d👩\u200d👧, ❤\ufe0f") == "a family: 👨\u200d👩\u200d👧, ❤\ufe0f"


@settings(max_examples=examples(300))
@given(st.text(st.sampled_from([*UNSEEN[:20], *"ada@example.com 13800138000 "]), max_size=60))
def test_what_is_left_reads_without_anything_to_hide(text: str) -> None:
    told = ALL.text(text)
    plain = "".join(c for c in told if c not in UNSEEN)
    assert ALL.text(plain) == plain


def test_a_longer_number_is_no_shorter_one() -> None:
    for digits in ("13800138000123", "138001380001", "411111111111111111111", "1101011990030745141"):
        assert ALL.text(f"手机壳，{digits}，x 13800138000").startswith(f"手机壳，{digits}，x [PHONE]")


def test_a_private_key_goes_whole_even_where_its_end_is_missing() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nabc+/=\n"
    assert ALL.text(f"a\n{key}-----END PRIVATE KEY-----\nb") == "a\n[SECRET]\nb"
    assert ALL.text(f"a\n{key}") == "a\n[SECRET]"


def test_a_number_that_is_told_to_be_something_else_stays() -> None:
    for line in ("订单号13800138000", "order 4155552671", "¥13800138000", "13800138000元", "#13800138000"):
        assert ALL.text(line) == line
    assert ALL.text("订单号13800138000，电话13800138000") == "订单号13800138000，电话[PHONE]"


def test_numbers_of_other_regions_are_known_when_asked_for() -> None:
    german = "Ruf an: 030 901820, mobil 0151 23456789"
    assert open_redactor("phone", "CN,US,DE").text(german) == "Ruf an: [PHONE], mobil [PHONE]"
    spanish = "al 612 34 56 78"
    assert open_redactor("phone", "ES").text(spanish) == "al [PHONE]"
    assert ALL.text(spanish) == spanish


# --- left alone


def test_placeholders_survive_and_a_second_pass_finds_nothing() -> None:
    for type_ in TYPES:
        for canary in canaries(type_, 40, seed=2):
            once = ALL.text(canary.text)
            assert ALL.text(once) == once
    said = "[EMAIL] [PHONE] password: [SECRET] postgres://a:[SECRET]@h/d"
    assert ALL.text(said) is said


_BITS = st.sampled_from(
    (
        *"0123456789@.:-+()/ =[]_#\"'，：（）。１２＠ aAzZxX",
        "卡号", "电话", "密码", "password=", "sk-", "AKIA",
        "eyJ", "://", "+86", "13800138000", "4111 1111 1111 1111", "a@b.cn", "[PHONE]", "\n", "::", "GB29",
        "-----BEGIN PRIVATE KEY-----", "10.0.0.1",
    )
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_BITS, max_size=40).map("".join) | st.text(max_size=80))
def test_any_text_is_redacted_once_and_for_all(text: str) -> None:
    once = ALL.text(text)
    assert ALL.text(once) == once
    kept = re.split(r"\[(?:" + "|".join(TYPES) + r")\]", once)
    place = 0
    for part in kept:  # what is left stands in the text, in that order
        place = text.index(part, place) + len(part)


@settings(max_examples=examples(60), deadline=None)
@given(st.text(alphabet=string.ascii_letters + " ,.;!?你好表格航班延误", max_size=200))
def test_plain_words_are_handed_back_as_they_are(text: str) -> None:
    if not any(word in text.lower() for word in ("pass", "key", "pwd", "token")):
        assert ALL.text(text) is text


# --- which finding wins


def test_of_findings_that_overlap_the_longest_names_all_that_they_cover() -> None:
    assert merged([Span(0, 5, "PHONE"), Span(3, 12, "EMAIL")]) == [Span(0, 12, "EMAIL")]
    assert merged([Span(0, 5, "IP"), Span(0, 5, "CARD"), Span(7, 9, "IP")]) == [
        Span(0, 5, "CARD"),
        Span(7, 9, "IP"),
    ]


# --- values


def test_values_are_redacted_however_deep_and_a_key_is_a_word_before_them() -> None:
    told = {
        "phone": 13800138000,
        "password": "my long one",
        "deep": [{"mail": "to a@b.cn"}, ("10.1.2.3", True, None, 1.5, 7)],
        "card": "4111111111111111",
        "note": 'he said "hi"',
        "ttl": 86400,
    }
    assert ALL.value(told) == {
        "phone": "[PHONE]",
        "password": "[SECRET]",
        "deep": [{"mail": "to [EMAIL]"}, ["[IP]", True, None, 1.5, 7]],
        "card": "[CARD]",
        "note": 'he said "hi"',
        "ttl": 86400,
    }


def test_placeholders_are_counted_by_type() -> None:
    assert ALL.counts("[EMAIL] [PHONE] [EMAIL] [TODO]") == Counter({"EMAIL": 2, "PHONE": 1})


# --- settings


def test_nothing_is_looked_for_unless_asked_for() -> None:
    text = "a@b.cn 13800138000"
    assert open_redactor("off", "CN").text(text) is text
    assert Redactor().is_off
    assert open_redactor("email", "CN").text(text) == "[EMAIL] 13800138000"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(SettingsError, match=r"phonenumbers.*supervisor-memory\[redact\]"):
        open_redactor("phone", "CN")
    assert open_redactor("secrets,email,card,ip", "CN").text("a@b.cn") == "[EMAIL]"


def test_a_region_without_numbers_is_refused() -> None:
    with pytest.raises(SettingsError, match="MEMORY_PHONE_REGIONS names 'ZZ'"):
        open_redactor("phone", "ZZ")


@every_case(
    ("text", "redacted"),
    [
        ("发到bo＠mail。example。cn，谢谢", "发到[EMAIL]，谢谢"),
        ("bo@example｡com 收", "[EMAIL] 收"),
        ("写给bo@测试.中国吧", "写给[EMAIL]吧"),
        ("邮箱是bo@example.com。Com means company.", "邮箱是[EMAIL]。Com means company."),
        ("@张三。明天见", "@张三。明天见"),
    ],
)
def test_addresses_typed_on_a_chinese_keyboard_are_found(text: str, redacted: str) -> None:
    assert ALL.text(text) == redacted
