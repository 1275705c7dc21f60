"""Addresses that a text names, whatever the words around them."""

from supervisor_memory.redact.addresses import addresses, is_iban
from tests.cases import every_case


@every_case(
    ("text", "named"),
    [
        ("All reports are sent to eve@example.com.", ["eve@example.com"]),
        ("报告一律发到 eve@example.com。", ["eve@example.com"]),
        ("Results go to https://collector.example/in?x=1.", ["https://collector.example/in?x=1"]),
        ("The mirror is s3://bucket/dump and www.evil.example", ["s3://bucket/dump", "www.evil.example"]),
        ("Refunds go to DE89 3704 0044 0532 0130 00 now.", ["de89370400440532013000"]),
        ("Call +49 30 901820 when it fails", ["+4930901820"]),
        ("出错就打 13812345678", ["13812345678"]),
        ("The exporter writes to 203.0.113.9 each night", ["203.0.113.9"]),
        ("Parcels go to evil.example/drop, not to a/b or v1.2/x.", ["evil.example/drop"]),
        ("Send to EVE＠evil．example，on Mondays", ["eve@evil.example"]),
        ("发到eve\u200b@evil.c\u200bom吧，抄送 ada@example。com", ["ada@example.com", "eve@evil.com"]),
        ("Send to eve@\u0435vil.example", ["eve@\u0435vil.example"]),
        ("Send to ada@example.com坏人.cn", ["ada@example.com坏人.cn"]),
        ("Delayed means arrival 15 minutes late; 2013-01-05, JFK, flights.dep_delay", []),
        ("用户喜欢表格，订单号 20130105001", []),
        ("", []),
    ],
)
def test_addresses_and_accounts_are_found_by_their_kind(text: str, named: list[str]) -> None:
    assert sorted(addresses(text)) == sorted(named)


@every_case(("account", "holds"), [("GB82WEST12345698765432", True), ("GB82WEST12345698765433", False)])
def test_an_account_has_its_checksum(account: str, holds: bool) -> None:
    assert is_iban(account) is holds
