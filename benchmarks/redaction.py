"""What redaction costs: a statement of 200 characters, and long texts made to be slow.

Run: python benchmarks/redaction.py

CPU time of this thread, the median of the rounds. Long texts are read at two sizes: where the larger one takes
as many times longer as it is larger, the cost grows with the size and no faster.
"""

# ruff: noqa: E501  # texts as they are

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Final

from supervisor_memory.redact.redactor import open_redactor

STATEMENTS: Final = {
    "words alone": "From now on show results as tables, sorted by delay, with whole minutes; the carrier comes first, "
    "then the airport, then the delay, and please no long text around it. Round what is left, thank you!",
    "with numbers": "On 2024-01-15 the delay was 15.5 minutes for UA1234 (tail N12345), order 8812, total 1,234,567 "
    "rows; see https://example.com/a?b=c, version 1.2.3, mean 12.7, p99 33.1, run 7 of 12, took 1,204 ms in all.",
    "with two to hide": "My number is +1 415 736 5000 and my mail is ada@example.com, so please send the weekly table "
    "of delays there, sorted by carrier, before nine on Mondays, and call me only when it is late.",
    "Chinese": "以后请用表格显示结果，并且按照延误排序，数字四舍五入到整数，航空公司放在第一列，谢谢。" * 5,
    "Chinese, eight to hide": "我的手机号是13800138000，邮箱是ada@example.com，以后请用表格显示结果，谢谢。"
    * 4,
}
SLOW: Final = {
    "digits": "1",
    "digits and spaces": "1 ",
    "digits and dashes": "12-",
    "brackets": "(0)",
    "at signs": "a@",
    "an address that never ends": "a@b.",
    "dots": "1.",
    "colons": "a:",
    "full-width digits": "１",
    "phone numbers": "+1 415 736 5000 ",
    "mobile numbers": "13800138000,",
    "cards": "4111 1111 1111 1111 ",
    "letters": "a",
    "capitals": "AB12",
    "words for a password": "password ",
    "values": "password=",
    "tokens": "eyJa.",
    "keys without an end": "-----BEGIN PRIVATE KEY-----",
    "addresses of servers": "a://b:c",
    "placeholders": "[PHONE]1",
}
_SMALL, _LARGE = 64 * 1024, 1024 * 1024


def milliseconds(function: Callable[[], object], *, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.thread_time()
        function()
        taken.append((time.thread_time() - start) * 1000)
    return statistics.median(taken)


def main() -> None:
    redact = open_redactor("all", "CN,US").text
    print(f"{'a statement':28} {'characters':>10} {'ms':>8}")
    for name, text in STATEMENTS.items():
        print(f"{name:28} {len(text):10} {milliseconds(lambda: redact(text), rounds=300):8.3f}")  # noqa: B023
    print(f"\n{'made to be slow':28} {'64 KB, ms':>10} {'1 MB, ms':>10} {'times':>6}  (the size: 16 times)")
    for name, (small, large) in grown(SLOW, redact).items():
        print(f"{name:28} {small:10.1f} {large:10.1f} {large / max(small, 0.01):6.1f}")


def grown(parts: Mapping[str, str], redact: Callable[[str], str]) -> dict[str, tuple[float, float]]:
    """What each text costs at both sizes."""

    def cost(part: str, size: int) -> float:
        text = (part * (size // len(part) + 1))[:size]
        return milliseconds(lambda: redact(text), rounds=1)

    return {name: (cost(part, _SMALL), cost(part, _LARGE)) for name, part in parts.items()}


if __name__ == "__main__":
    main()
