"""Keys, tokens and passwords, also those in connection strings, in a folded text."""

import re
from collections.abc import Iterator
from typing import Final

from supervisor_memory.redact.spans import Read, Span, is_placeholder

__all__ = ["secrets"]

_TOKENS: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    + "|".join(
        (
            r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # AWS
            r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{22,255}",
            r"gl(?:pat|ptt|dt|rt|soat|cbt|agent|ft|imt|oas)-[A-Za-z0-9_-]{20,300}",  # GitLab
            r"xox[abdeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}",  # Slack
            r"sk-(?=[A-Za-z0-9_-]{0,250}[0-9])[A-Za-z0-9_-]{20,250}",  # OpenAI, Anthropic, DeepSeek
            r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/=]{20,100}",  # Stripe
            r"AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{20,60}|ya29\.[A-Za-z0-9_-]{20,400}",  # Google
            r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{4,8000}(?:\.[A-Za-z0-9_-]{0,4000})?",  # JWT
            r"hf_[A-Za-z0-9]{30,60}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,400}|dop_v1_[a-f0-9]{64}",
            r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}|gsk_[A-Za-z0-9]{40,64}|xai-[A-Za-z0-9]{60,100}",
            r"LTAI[A-Za-z0-9]{12,24}|AKID[A-Za-z0-9]{32}",  # Alibaba, Tencent
            r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",  # Telegram
        )
    )
    + r")(?![A-Za-z0-9_])"
)
_WEBHOOK: Final = re.compile(r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,200}")
_BEARER: Final = re.compile(
    r"(?<![A-Za-z])(?:bearer|basic)\s{1,3}((?=[A-Za-z0-9._~+/=-]{0,400}[0-9])[A-Za-z0-9._~+/=-]{16,4000})",
    re.IGNORECASE,
)
_PASSWORD_IN_URL: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/:@\[\]]{0,128}:([^\s/]{1,256})@"  # to the last "@": it may hold one
)
_FOR_CURL: Final = re.compile(r"(?<!\S)(?:-u|--user)[ =]{1,2}[\"']?[^\s:]{1,64}:([^\s\"']{3,256})")
_PEM_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_REST: Final = re.compile(r"[A-Za-z0-9+/=:,\s\\-]*")

# In small letters, and without what must come before them: that way a search jumps from one to the next.
_NAMES: Final = re.compile(
    r"(?P<strong>password|passwd|passphrase|passcode|[_-]pass(?![a-z])|pwd|passwort|kennwort|"
    r"contrase[nñ]a|mot de passe|密码|密碼|口令|暗号)"
    r"|(?P<weak>api[_ -]?key|secret(?:[_ -]?(?:access)?[_ -]?key)?|access[_ -]?key(?:[_ -]?(?:id|secret))?|"
    r"(?:auth|private|account|shared[_ -]?access)[_ -]?key|token|credentials?|密钥|秘钥|金钥|令牌|私钥|凭证)"
    r"|(?P<pin>(?<![a-z])(?:pin|cvv2?|cvc)(?:[ -]?(?:code|number)|码)?(?![a-z]))"
)
_KIND: Final = re.compile(
    r"(?![a-z])(?:(?P<assigned>[\"'`]?\s{0,3}(?:=>|:=|==?|:)\s{0,3})"
    r"|(?P<chinese>\s{0,2}(?:已?改成|已?改为|设置?为|设成|换成|重置为|是|为)\s?:?\s?)"
    r"|(?P<told>(?:'s|\s(?:is|was)(?: now)?|\sto)\s{1,2}:?\s?)|(?P<beside>\s{1,2}))"
)
_VALUE: Final = re.compile(
    r"\"(?P<double>[^\"\n]{1,400})\"|'(?P<single>[^'\n]{1,400})'|`(?P<tick>[^`\n]{1,400})`"
    r"|[“「『](?P<curly>[^”」』\n]{1,400})[”」』]"
    r"|(?P<bare>(?:(?!&[A-Za-z_]{1,30}=)[!-~]){3,400})"
)
_STOPS: Final = re.compile(r"[,;<>\"'`]")
_NO_VALUE: Final = re.compile(
    r"(?:null|none|nil|true|false|undefined|required|optional|string|str|text|bool|int|yes|no|not|empty|unset|"
    r"default|hidden|changed|expired|invalid|valid|wrong|incorrect|missing|reset|set|stored|the|a|an|n/?a|tbd|todo|"
    r"sha-?\d+|md5|base\d+|utf-?\d+|oauth2?|x{3,}|\*+|\.{2,}|password|passwd|secret|token|redacted|hashed|encrypted|plain(?:text)?|input|field|"
    r"(?:var)?char.*|getpass.*|os\.(?:environ|getenv).*|env[.\[].*|process\.env.*|config[.\[].*|self\..*|"
    r"settings\..*|request\..*|args\..*|%s|%\(.*|\?|\$\d+|:[a-z_]+|\$\{?[A-Z_]+\}?|\{.*|\[.*|<.*)\Z",
    re.IGNORECASE,
)
_MARK: Final = re.compile(r"[0-9!@#$%^&*+~]")
_PIN: Final = re.compile(r"\d{3,8}\Z")
_LETTER: Final = re.compile(r"[A-Za-z]")
_TERMINAL: Final = re.compile(r"\s*(?:$|[\n,.;)\]}，。；、）】！!]|\Z)")
_LEAST_KEY, _LONG_KEY, _LEAST_WORD = 8, 24, 4
_LEAST_BESIDE, _LEAST_KEY_BESIDE = 5, 16
_WORDS: Final = (
    "pass", "pwd", "kennwort", "contrase", "secret", "token", "key", "credential",
    "pin", "cvv", "cvc", "密码", "密碼", "口令", "暗号", "密钥", "秘钥", "金钥", "令牌", "私钥", "凭证",
)  # fmt: skip
_PREFIXES: Final = (
    "AKIA", "ASIA", "ABIA", "ACCA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl", "xox",
    "xapp-", "sk-", "_live_", "_test_", "whsec_", "AIza", "GOCSPX-", "ya29.", "eyJ", "hf_", "npm_", "pypi-",
    "dop_v1_",
    "SG.", "gsk_", "xai-", "LTAI", "AKID", ":AA",
)  # fmt: skip


def secrets(read: Read) -> Iterator[Span]:
    """Keys of well-known forms, private keys, passwords in URLs, and values named as a secret."""
    text, lowered = read.text, read.lowered
    if any(prefix in text for prefix in _PREFIXES):
        yield from (Span(*match.span(), "SECRET") for match in _TOKENS.finditer(text))
    if "-----begin" in lowered:
        yield from _private_keys(text)
    if "://" in text:
        yield from (Span(*match.span(), "SECRET") for match in _WEBHOOK.finditer(text))
        yield from _first_groups(_PASSWORD_IN_URL, text)
    if "-u" in text:
        yield from _first_groups(_FOR_CURL, text)
    if "bearer" in lowered or "basic" in lowered:
        yield from _first_groups(_BEARER, text)
    if any(word in lowered for word in _WORDS):
        yield from _named(read)


def _first_groups(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    for match in pattern.finditer(text):
        if not is_placeholder(match[1]) and not _NO_VALUE.match(match[1]):
            yield Span(*match.span(1), "SECRET")


def _private_keys(text: str) -> Iterator[Span]:
    """Private keys, from first to last line; without a last line, all text that can belong to the key."""
    place = 0
    while begin := _PEM_BEGIN.search(text, place):
        following = _PEM_BEGIN.search(text, begin.end())
        end = _PEM_END.search(text, begin.end(), following.start() if following else len(text))
        rest = end or _PEM_REST.match(text, begin.end(), following.start() if following else len(text))
        place = rest.end() if rest else begin.end()
        yield Span(begin.start(), place, "SECRET")


def _named(read: Read) -> Iterator[Span]:
    text = read.text
    for name in _NAMES.finditer(read.lowered):
        kind = _KIND.match(read.lowered, name.end())
        value = _VALUE.match(text, kind.end()) if kind else None
        if kind is None or value is None or value.lastgroup is None:
            continue
        start, end = value.span(value.lastgroup)
        is_quoted = value.lastgroup != "bare"
        if not is_quoted:
            end = _bare_end(text, start, end)
        told = text[start:end]
        if not told or is_placeholder(told) or _NO_VALUE.match(told) or text.startswith("(", end):
            continue
        is_last = is_quoted or _TERMINAL.match(text, end) is not None
        if name["pin"]:
            if not kind["beside"] and _PIN.match(told):  # "the pin is 4711", and not "pin 13"
                yield Span(start, end, "SECRET")
        elif (_is_password if name["strong"] else _is_key)(told, kind, is_quoted=is_quoted, is_last=is_last):
            yield Span(start, end, "SECRET")


def _bare_end(text: str, start: int, end: int) -> int:
    if stop := _STOPS.search(text, start, end):
        end = stop.start()
    while end > start and text[end - 1] in ".:)]}":
        end -= 1
    return end


def _is_key(told: str, kind: re.Match[str], *, is_quoted: bool, is_last: bool) -> bool:
    if kind["beside"]:
        return _is_mixed(told) and len(told) >= _LEAST_KEY_BESIDE
    return " " not in told and ((_is_mixed(told) and len(told) >= _LEAST_KEY) or len(told) >= _LONG_KEY)


def _is_password(told: str, kind: re.Match[str], *, is_quoted: bool, is_last: bool) -> bool:
    """Whether a value behind a word for a password is a password, not the next word of a sentence."""
    if kind["beside"]:  # "password hunter2", and not "password field"
        return _is_mixed(told) and len(told) >= _LEAST_BESIDE
    if _MARK.search(told.rstrip("!")):
        return True
    if kind["told"]:  # "the password is required"
        return is_quoted and " " not in told
    return len(told) >= _LEAST_WORD and (is_last or kind["chinese"] is not None or "=" in kind[0])


def _is_mixed(told: str) -> bool:
    return " " not in told and _LETTER.search(told) is not None and _MARK.search(told) is not None
