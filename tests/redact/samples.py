"""Made-up personal data, secrets and harmless lines that look like them, as people write them. Seeded.

Nothing here is anybody's: numbers are drawn at random and given the checksum that makes them valid.
"""

# ruff: noqa: E501, PLR0915  # tables of how people write things, read across

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import phonenumbers
import stdnum.iban
from stdnum import luhn
from stdnum.br import cpf
from stdnum.es import nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.kr import rrn

__all__ = ["TYPES", "Canary", "canaries", "harmless"]


@dataclass(frozen=True, slots=True)
class Canary:
    """A sentence with something in it: `before`, what must go, `after`."""

    type: str
    before: str
    told: str
    after: str

    @property
    def text(self) -> str:
        return f"{self.before}{self.told}{self.after}"

    @property
    def redacted(self) -> str:
        return f"{self.before}[{self.type}]{self.after}"


def _digits(rng: random.Random, count: int, first: str = "0123456789") -> str:
    return rng.choice(first) + "".join(rng.choices(string.digits, k=count - 1))


def _wide(text: str) -> str:
    return "".join(
        chr(ord(c) + 0xFEE0) if c in string.ascii_letters + string.digits + "@." else c for c in text
    )


def _valid(make: Callable[[], str], is_valid: Callable[[str], bool]) -> str:
    while not is_valid(told := make()):
        pass
    return told


def _is_number(told: str) -> bool:
    return phonenumbers.is_valid_number(phonenumbers.parse(told))


# --- what must go


def _email(rng: random.Random) -> str:
    local = rng.choice(
        (
            f"{rng.choice(('wang', 'li.na', 'ada', 'j.smith', 'maria_lopez'))}{_digits(rng, 4)}",
            f"{_digits(rng, 9, '123456789')}",
            f"first.last+tag{_digits(rng, 3)}",
        )
    )
    domain = rng.choice(("qq.com", "163.com", "example.co.uk", "mail.example.org", "gmail.com", "例.com"[1:]))
    told = f"{local}@{'corp' + domain if domain.startswith('.') else domain}"
    return rng.choice((told, told, told, told.upper(), _wide(told)))


def _cn_mobile(rng: random.Random) -> str:
    number = f"1{rng.choice('3456789')}{_digits(rng, 9)}"
    a, b, c = number[:3], number[3:7], number[7:]
    return rng.choice(
        (
            number, number, f"{a} {b} {c}", f"{a}-{b}-{c}", f"+86 {number}", f"+86{number}", f"86-{number}",
            f"+86 {a} {b} {c}", f"(+86){number}", f"0086 {number}", _wide(number), f"{number[:4]} {number[4:7]} {c}",
        )
    )  # fmt: skip


def _cn_landline(rng: random.Random) -> str:
    area = rng.choice(("010", "021", "0755", "0571", "028", "020"))
    number = _valid(lambda: _digits(rng, 8, "5678"), lambda told: _is_number(f"+86{area[1:]}{told}"))
    return rng.choice(
        (
            f"{area}-{number}", f"({area}){number}", f"（{area}）{number}", f"{area} {number[:4]} {number[4:]}",
            f"+86 {area[1:]} {number}", f"+86-{area[1:]}-{number}", f"400-{_digits(rng, 3, '6789')}-{_digits(rng, 4)}",
        )
    )  # fmt: skip


def _us_phone(rng: random.Random) -> str:
    area = rng.choice(("415", "212", "646", "312", "650", "206"))
    mid, last = _digits(rng, 3, "23456789"), _digits(rng, 4)
    while mid.endswith("11") or mid == "555":
        mid = _digits(rng, 3, "23456789")
    return rng.choice(
        (
            f"{area}-{mid}-{last}", f"({area}) {mid}-{last}", f"{area}.{mid}.{last}", f"+1 {area}-{mid}-{last}",
            f"+1{area}{mid}{last}", f"1-{area}-{mid}-{last}", f"{area} {mid} {last}",
        )
    )  # fmt: skip


def _abroad(rng: random.Random) -> str:
    region = rng.choice(("GB", "DE", "FR", "JP", "IN", "BR", "SG", "AU", "KR"))
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    assert example is not None
    form = rng.choice((phonenumbers.PhoneNumberFormat.INTERNATIONAL, phonenumbers.PhoneNumberFormat.E164))
    told = phonenumbers.format_number(example, form)
    changed = told[:-2] + _digits(rng, 2)  # another subscriber
    return changed if _is_number(changed) else told


def _phone(rng: random.Random) -> str:
    return rng.choice((_cn_mobile, _cn_mobile, _cn_landline, _us_phone, _us_phone, _abroad))(rng)


def _cn_id(rng: random.Random) -> str:
    born = datetime.fromtimestamp(rng.randrange(-600_000_000, 1_200_000_000), UTC).strftime("%Y%m%d")
    area = rng.choice(("110105", "310115", "440304", "330106", "510107"))
    start = f"{area}{born}{_digits(rng, 3)}"
    check = (1 - 2 * int(start, 13)) % 11
    last = rng.choice("Xx") if check == 10 else str(check)
    return rng.choice((start + last, start + last, f"{area} {born} {start[14:]}{last}", _wide(start + last)))


def _us_ssn(rng: random.Random) -> str:
    return f"{rng.choice((rng.randrange(1, 665), rng.randrange(667, 899))):03}-{rng.randrange(1, 99):02}-{_digits(rng, 4, '123456789')}"


def _national_id(rng: random.Random) -> str:
    def letters(count: int) -> str:
        return "".join(rng.choices("BCDFGLMNPRST", k=count))

    day, month, year = rng.randrange(1, 28), rng.randrange(1, 12), rng.randrange(50, 99)
    return rng.choice(
        (
            lambda: _valid(
                lambda: f"{_digits(rng, 3)}.{_digits(rng, 3)}.{_digits(rng, 3)}-{_digits(rng, 2)}",
                cpf.is_valid,
            ),
            lambda: _valid(
                lambda: (
                    f"{letters(6)}{year}{rng.choice('ABCDEHLMPRST')}{day:02}{rng.choice('ABCDEFGH')}{_digits(rng, 3)}{rng.choice(string.ascii_uppercase)}"
                ),
                codicefiscale.is_valid,
            ),
            lambda: _valid(
                lambda: (
                    f"{rng.choice('12')} {year} {month:02} 75 {_digits(rng, 3)} {_digits(rng, 3)} {rng.randrange(1, 97):02}"
                ),
                nir.is_valid,
            ),
            lambda: _valid(
                lambda: f"{year}{month:02}{day:02}-{rng.choice('12')}{_digits(rng, 6)}",
                rrn.is_valid,
            ),
            lambda: _valid(
                lambda: f"{rng.choice('XYZ')}{_digits(rng, 7)}{rng.choice('TRWAGMYFPDXBNJZSQVHLCKE')}",
                nie.is_valid,
            ),
            lambda: _valid(
                lambda: (
                    f"{day:02}{month:02}{year}-{_digits(rng, 3)}{rng.choice('0123456789ABCDEFHJKLMNPRSTUVWXY')}"
                ),
                hetu.is_valid,
            ),
        )
    )()


def _card(rng: random.Random) -> str:
    prefix, length = rng.choice(
        (
            ("4", 16), ("51", 16), ("55", 16), ("2300", 16), ("34", 15), ("37", 15), ("6011", 16), ("3530", 16),
            ("622202", 19), ("621700", 19), ("6225", 16), ("36", 14),
        )
    )  # fmt: skip
    start = prefix + "".join(rng.choices(string.digits, k=length - len(prefix) - 1))
    number = start + luhn.calc_check_digit(start)
    fours = [number[i : i + 4] for i in range(0, length, 4)]
    sep = rng.choice(" -")
    forms = [number, _wide(number)]
    if length in (16, 19):
        forms += [sep.join(fours), sep.join(fours)]
    if length in (14, 15):
        forms += [sep.join((number[:4], number[4:10], number[10:]))]
    return rng.choice(forms)


def _iban(rng: random.Random) -> str:
    country, bank, count = rng.choice(
        (
            ("DE", "", 18),
            ("GB", "NWBK", 14),
            ("NL", "ABNA", 10),
            ("AT", "", 16),
            ("DK", "", 14),
            ("PT", "", 21),
        )
    )

    def number() -> str:
        account = bank + _digits(rng, count)
        return country + stdnum.iban.calc_check_digits(f"{country}00{account}") + account

    told = _valid(number, stdnum.iban.is_valid)
    return rng.choice((told, " ".join(told[i : i + 4] for i in range(0, len(told), 4)), told.lower()))


def _ip(rng: random.Random) -> str:
    if rng.random() < 0.3:
        groups = [f"{rng.randrange(0x1000, 0xFFFF):x}" for _ in range(8)]
        return rng.choice(
            (":".join(groups), f"2001:db8::{groups[0]}:{groups[1]}", f"fe80::{groups[2]}:{groups[3]}")
        )
    first = rng.choice((10, 172, 192, rng.randrange(32, 126), rng.randrange(128, 223)))
    return f"{first}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"


def _word(rng: random.Random, count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return (
        "".join(rng.choices(letters, k=count - 2))
        + rng.choice(string.ascii_letters)
        + rng.choice("123456789")
    )


def _token(rng: random.Random) -> str:
    hexes, upper = "0123456789abcdef", string.ascii_uppercase + "234567"

    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    return rng.choice(
        (
            f"AKIA{_word(rng, 16, upper).upper()}",
            f"ghp_{_word(rng, 36)}",
            f"github_pat_{_word(rng, 22)}_{_word(rng, 59)}",
            f"glpat-{_word(rng, 20)}",
            f"xoxb-{_digits(rng, 12, '123')}-{_word(rng, 24)}",
            f"sk-{_word(rng, 48)}",
            f"sk-proj-{_word(rng, 40)}",
            f"sk-ant-api03-{_word(rng, 60)}",
            f"AIza{_word(rng, 35)}",
            f"sk_live_{_word(rng, 24)}",
            f"hf_{_word(rng, 34)}",
            f"npm_{_word(rng, 36)}",
            part('{"alg":"HS256","typ":"JWT"}') + "." + part(f'{{"sub":"{_digits(rng, 9)}"}}') + "." + _word(rng, 43),
            "-----BEGIN RSA PRIVATE KEY-----\n"
            + "\n".join(_word(rng, 64) for _ in range(3))
            + "\n-----END RSA PRIVATE KEY-----",
            f"LTAI{_word(rng, 20)}",
            f"dop_v1_{_word(rng, 62, hexes)[:-2]}{_word(rng, 4, hexes)[:2]}{_digits(rng, 2)}",
        )
    )  # fmt: skip


def _password(rng: random.Random) -> str:
    return rng.choice(
        (
            _word(rng, 8),
            f"{_word(rng, 6)}!{_digits(rng, 2)}",
            f"Tr0ub4dor&{_digits(rng, 3)}",
            f"p@ss{_word(rng, 6)}",
        )
    )


# --- where it stands

_ANYWHERE: Final = (
    ("", ""),
    ("please remember ", " for next time"),
    ("it was ", ", I think."),
    ("(", ")"),
    ("请记住", "，谢谢"),
    ("以后都用", "这个。"),
    ("信息：", "；"),
    ("\n", "\n"),
    ("- ", ""),
    ('"', '"'),
)
_AROUND: Final = {
    "EMAIL": (("my email is ", "."), ("write to ", " today"), ("邮箱：", "，收到请回复"), ("我的邮箱是", "谢谢"), ("发到", "吧")),
    "PHONE": (("call me at ", " after six"), ("my number is ", "."), ("电话：", "，随时"), ("手机号", "，谢谢"), ("请拨打", "联系我"), ("Tel. ", "")),
    "CN_ID": (("身份证号：", "。"), ("身份证号码是", "，北京"), ("my Chinese ID is ", "."), ("证件号 ", "")),
    "US_SSN": (("my SSN is ", "."), ("SSN: ", ", thanks"), ("社会安全号码：", "。")),
    "NATIONAL_ID": (("my ID number is ", "."), ("号码：", "。")),
    "CARD": (("my card is ", ", exp 12/27"), ("卡号：", "，有效期12/27"), ("银行卡号", "尾号"), ("charge ", " please")),
    "IBAN": (("transfer to ", " today"), ("收款账号：", "，谢谢"), ("IBAN ", ".")),
    "IP": (("the server is ", "."), ("host ", " is down"), ("服务器地址：", "，端口22"), ("IP是", "，别忘了"), ("ssh root@", "")),
    "SECRET": (("use ", " for the API"), ("令牌：", "，保密"), ("the key: ", "")),
}  # fmt: skip
_PASSWORDS: Final = (
    ("password=", ""),
    ("my password is ", ""),
    ("Password: ", ""),
    ("密码：", ""),
    ("密码是", "，别告诉别人"),
    ("wifi密码 ： ", " 记一下"),
    ("DB_PASSWORD='", "'"),
    ('{"password": "', '"}'),
    ("export API_KEY=abc", ""),
    ("口令改成", "了"),
    ("postgres://app:", "@db.example.com:5432/sales"),
    ("mysql+pymysql://root:", "@10.abc/sales"),
    ("Authorization: Bearer abcdefghij", ""),
    ("Server=db;User Id=sa;Password=", ";"),
)
_MAKE: Final[dict[str, Callable[[random.Random], str]]] = {
    "EMAIL": _email,
    "PHONE": _phone,
    "CN_ID": _cn_id,
    "US_SSN": _us_ssn,
    "NATIONAL_ID": _national_id,
    "CARD": _card,
    "IBAN": _iban,
    "IP": _ip,
    "SECRET": _token,
}
TYPES: Final = tuple(_MAKE)


def canaries(type_: str, count: int, *, seed: int = 0) -> list[Canary]:
    """So many of a type, each different, half of them in a sentence that says what they are."""
    rng = random.Random(f"{type_} {seed}")
    found: dict[str, Canary] = {}
    while len(found) < count:
        if type_ == "SECRET" and len(found) % 3 == 0:
            before, after = rng.choice(_PASSWORDS)
            prefix, _, told_before = before.rpartition("abc")  # a key goes on where the example begins
            if prefix.endswith(("=", " ")) and told_before.strip("defghij") == "":
                canary = Canary("SECRET", prefix, f"abc{told_before}{_word(rng, 12)}", after)
            else:
                canary = Canary("SECRET", before, _password(rng), after)
        else:
            before, after = rng.choice(_AROUND[type_] if len(found) % 2 else _ANYWHERE)
            canary = Canary(type_, before, _MAKE[type_](rng), after)
        found[canary.told] = canary
    return list(found.values())


# --- what must stay


def _ean(rng: random.Random, start: str) -> str:
    digits = start + "".join(rng.choices(string.digits, k=12 - len(start)))
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return digits + str(-total % 10)


def _harmless(rng: random.Random) -> Iterator[str]:
    """One line of every form."""
    when = datetime.fromtimestamp(rng.randrange(1_400_000_000, 1_900_000_000), UTC)
    n, hexes = rng.randrange, "0123456789abcdef"
    seconds = when.timestamp()
    for count in (8, 9, 10, 12, 14, 16, 18, 20):
        yield rng.choice(
            ("order {}", "订单号：{}", "order no. {} shipped", "订单{}已发货", "Invoice #{}", "工单 {}")
        ).format(_digits(rng, count, "123456789"))
    yield f"the run {_digits(rng, 9, '123456789')} took {n(100)} s"
    yield f"运单号 SF{_digits(rng, 13)}"
    yield f"tracking 1Z{_word(rng, 16).upper()}"
    for form in (
        "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%d/%m/%Y", "%m-%d-%Y", "%Y%m%d", "%Y%m%d%H%M%S", "%Y.%m.%d", "%d.%m.%Y %H:%M",
        "%Y年%m月%d日", "%Y年%m月%d日%H时%M分", "%b %d, %Y", "%H:%M:%S", "%Y-%m-%dT%H:%M:%S.000Z", "%Y/%m/%d", "%a %d %b %Y",
    ):  # fmt: skip
        yield rng.choice(("on {}", "{}", "于{}更新", "since {}, daily", "截至{}")).format(when.strftime(form))
    yield f"from {when:%Y-%m-%d} to {when.year + 1}-01-31 10:00"
    yield f"{when.year - 4} {when.year - 3} {when.year - 2} {when.year - 1} {when.year}"
    yield f"epoch {int(seconds)}"
    yield f"ts={int(seconds * 1000)}"
    yield f"created {int(seconds)} updated {int(seconds) + 40}"
    yield f"时间戳{int(seconds * 1000)}"
    yield f"{int(seconds * 1_000_000)} microseconds"
    yield f"at {seconds + n(1000) / 1000:.6f}"
    yield f"commit {_word(rng, 40, hexes)}"
    yield f"sha256 {''.join(rng.choices(hexes, k=64))}"
    yield f"md5 {''.join(rng.choices(hexes, k=32))}"
    yield f"see {''.join(rng.choices(hexes, k=7))}"
    yield f"id {uuid.UUID(int=rng.getrandbits(128), version=4)}"
    yield f"请求 {uuid.UUID(int=rng.getrandbits(128), version=4)} 失败"
    yield f"report_{when:%Y%m%d}_{n(100):03}.csv"
    yield f"IMG_{when:%Y%m%d}_{_digits(rng, 6)}.jpg"
    yield f"backup-{when:%Y-%m-%d}-{_digits(rng, 6)}.tar.gz"
    yield f"/data/{when:%Y/%m/%d}/part-{n(99999):05}-{_word(rng, 8)}.parquet"
    yield f"version {n(20)}.{n(30)}.{n(100)}"
    yield f"v{n(20)}.{n(30)}.{n(100)}.{n(9999)}"
    yield f"numpy=={n(3)}.{n(30)}.{n(10)}, lodash@{n(5)}.{n(20)}.{n(30)}"
    yield f"Chrome/{n(90, 140)}.0.{n(9999)}.{n(250)}"
    yield f"第{n(1, 20)}.{n(1, 9)}.{n(1, 9)}.{n(1, 9)}节"
    yield f"see section {n(1, 20)}.{n(1, 9)}.{n(1, 9)}.{n(1, 9)}"
    yield f"mean {n(10**6)}.{_digits(rng, 10)}"
    yield f"p99 = {n(1000)}.{_digits(rng, 6)} ms"
    yield f"均值{n(1000)}.{_digits(rng, 8)}"
    yield f"loss -{n(10)}.{_digits(rng, 8)}e-{n(10):02}"
    yield f"{n(10**9):,} rows in {n(10**7):,} groups"
    yield f"共 {n(10**11)} 条"
    yield f"revenue ${n(10**9):,}.{n(100):02}"
    yield f"¥{n(10**11)}"
    yield f"€{n(10**6)}.{n(100):02} / ${n(10**7)}"
    yield f"金额：{n(10**8)}.{n(100):02}元"
    yield f"销售额{n(10**11)}元"
    yield f"{n(1, 999)} {_digits(rng, 3)} {_digits(rng, 3)},00 €"
    yield f"range {n(1000)}-{n(1000)}-{n(1000)}"
    yield f"pages {n(100, 500)}-{n(500, 900)}, columns {n(10)}..{n(10, 20)}"
    yield f"fact_sales_{when:%Y%m}_{n(100)}"
    yield f"dwd_order_detail_{when:%Y%m%d}"
    yield f"SELECT * FROM t_{_digits(rng, 8)} WHERE id = {n(10**9)}"
    yield f"ISBN {_ean(rng, '978')}"
    yield f"ISBN 978-7-{_digits(rng, 3)}-{_digits(rng, 5)}-{n(10)}"
    yield f"EAN {_ean(rng, rng.choice(('400', '690', '501')))}"
    yield f"条码{_ean(rng, '690')}"
    yield f"{n(-90, 90)}.{_digits(rng, 6)}, {n(-180, 180)}.{_digits(rng, 6)}"
    yield f"北纬{n(18, 50)}.{_digits(rng, 6)}，东经{n(74, 134)}.{_digits(rng, 6)}"
    yield f"flight {rng.choice(('UA', 'DL', 'CA', 'MU'))}{n(1, 9999)} tail N{n(10000, 99999)}"
    yield f"SKU-{_digits(rng, 4)}-{_digits(rng, 4)}-{_digits(rng, 2)}"
    yield f"型号 {_word(rng, 2).upper()}-{_digits(rng, 5)}"
    yield f"ratio {n(100)}:{n(100)}, time {n(24):02}:{n(60):02}:{n(60):02}.{n(1000):03}"
    yield f"MAC {':'.join(f'{n(256):02x}' for _ in range(6))}"
    yield f"#{n(10**6)} and PR {n(10**5)}"
    yield f"port {n(1024, 65535)} pid {n(10**6)}"
    yield f"0x{''.join(rng.choices(hexes, k=16))}"
    yield f"postcode {_digits(rng, 5)}-{_digits(rng, 4)}, 邮编{_digits(rng, 6)}"
    yield f"{n(1, 31)}/{n(1, 12)}/{when.year} {n(12)}:{n(60):02} pm"
    yield f"query took {n(10**6)} ms, {n(10**8)} bytes, {n(10**10)} ns"
    yield rng.choice(
        (
            "the password is required", "reset the password to log in", "password: required", "忘记密码怎么办", "密码是什么？",
            "token: number of words", "max_tokens=4096", "the secret is out", "count tokens: 800", "the key is to sort",
            "primary key: order_id", "password field: hidden", "basic statistics", "密码不能为空", "令牌桶限流",
            "password=${DB_PASSWORD}", "password=os.environ['PW']", "keyword: refund", "api key: see vault",
            "pin 13 is the clock", "spin: 40 rounds", "the pin is blue", "pinned: 12", "shipping is 4711",
        )
    )  # fmt: skip
    yield rng.choice(
        (
            "@types/node", "git@github.com:org/repo.git", "icon@2x.png", "@app.route('/x')", "user@localhost", "a @ b", "见@所有人",
            "std::vector<int> a", "dead::beef", "10:30:00", "12:30:45-13:00:00", "127.0.0.1", "0.0.0.0", "255.255.255.0",
        )
    )  # fmt: skip


def harmless(count: int, *, seed: int = 0) -> list[str]:
    """So many lines without personal data, of all forms in turn."""
    rng = random.Random(f"harmless {seed}")
    lines: list[str] = []
    while len(lines) < count:
        lines += _harmless(rng)
    return lines[:count]
