"""Every phrase of the pages, in English and Chinese."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from supervisor_memory.model.explain import REASONS

__all__ = ["LANGUAGES", "WORDS", "Language", "preferred", "worded"]

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
NAMES: Final[Mapping[Language, str]] = MappingProxyType({"en": "English", "zh": "中文"})

_REASONS_IN_CHINESE: Final = {
    "kept": "已给出",
    "standing": "无论问什么都给出：长期有效的偏好（MEMORY_STANDING_NOTES）",
    "below-threshold": "相关性不够：低于阈值（MEMORY_MIN_SCORE）",
    "after-knee": "匹配度在它之前明显下降（MEMORY_KNEE）",
    "over-limit": "相关，但超出给出的条数（MEMORY_TOP_K、MEMORY_MAX_NOTES）",
    "over-budget": "相关，但摘记里放不下（MEMORY_MAX_CONTEXT_TOKENS）",
    "already-said": "读者眼前已经有了",
    "left-out": "被配方中的一个步骤略去",
}

_PHRASES: Final[dict[str, tuple[str, str]]] = {
    "title": ("Memory review", "记忆审核"),
    "skip": ("Skip to content", "跳到正文"),
    # the six pages, and the door
    "inbox": ("Inbox", "待审"),
    "turns": ("Turns", "轮次"),
    "turn": ("Turn", "轮次"),
    "record": ("Record", "记录"),
    "records": ("Records", "记录"),
    "preview": ("Preview", "预览"),
    "health": ("Health", "健康"),
    "pages": ("Pages", "页面"),
    "signed-in-as": ("Signed in as {name}", "已登录：{name}"),
    "read-only": ("may read alone", "只读"),
    "sign-in": ("Sign in", "登录"),
    "sign-out": ("Sign out", "退出"),
    "token": ("Access token", "访问令牌"),
    "token-hint": (
        "The token your operator gave you. It is kept in a cookie that no script can read, until you sign "
        "out or close the browser.",
        "由运维人员提供的令牌。它保存在脚本读不到的 cookie 中，直到您退出或关闭浏览器。",
    ),
    "token-wrong": ("This token is not known here.", "这里不认识这个令牌。"),
    # common
    "user": ("User", "用户"),
    "all-users": ("all users", "所有用户"),
    "agent": ("Agent", "agent"),
    "supervisor": ("supervisor", "supervisor"),
    "memory": ("memory", "记忆"),
    "kind": ("Kind", "类型"),
    "family": ("Namespace", "命名空间"),
    "status": ("Status", "状态"),
    "any": ("any", "不限"),
    "when": ("Time", "时间"),
    "by": ("By", "由"),
    "what": ("What", "操作"),
    "reason": ("Reason", "原因"),
    "score": ("Score", "得分"),
    "rank": ("Rank", "名次"),
    "text": ("Text", "文本"),
    "version": ("Version", "版本"),
    "tokens": ("Tokens", "token 数"),
    "n-tokens.one": ("{n} token", "{n} 个 token"),
    "n-records.one": ("{n} record", "{n} 条记录"),
    "n-tokens": ("{n} tokens", "{n} 个 token"),
    "n-records": ("{n} records", "{n} 条记录"),
    "show": ("Show", "显示"),
    "newer": ("Newer", "较新"),
    "older": ("Older", "较旧"),
    "cancel": ("Cancel", "取消"),
    "undo": ("Undo", "撤销"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "gone": ("erased, or no longer there", "已抹去，或已不在"),
    "none": ("none", "无"),
    "utc": ("Times are in UTC.", "时间为 UTC。"),
    # inbox
    "inbox-lead": (
        "What waits for a person before it is remembered. Approving decides against what is known now.",
        "在被记住之前等待人工审核的内容。批准时会对照当前已知的内容再作判定。",
    ),
    "inbox-empty": ("Nothing waits for review.", "没有待审的内容。"),
    "inbox-empty-hint": (
        "Statements about a user that come from an agent or a tool will appear here; MEMORY_REVIEW says "
        "what else has to wait.",
        "agent 或工具带来的、关于用户的陈述会出现在这里；还有哪些需要等待，由 MEMORY_REVIEW 决定。",
    ),
    "n-waiting": ("{n} waiting", "{n} 条待审"),
    "existing": ("Known", "已有"),
    "proposed": ("Proposed", "提议"),
    "result": ("If approved", "批准之后"),
    "existing-none": ("Nothing is known of this yet.", "对此尚无记录。"),
    "evidence": ("Where it comes from", "出处"),
    "evidence-none": ("What was said was not kept.", "原话没有保留。"),
    "evidence-words": ("From the words", "取自"),
    "approve": ("Approve", "批准"),
    "edit": ("Edit", "修改"),
    "edit-save": ("Approve in these words", "以此表述批准"),
    "edit-text": ("What to remember instead", "改为记住"),
    "reject": ("Reject", "拒绝"),
    "reject-reason": ("Why not (optional)", "拒绝的原因（可不填）"),
    "last-decision": ("Your last decision", "您上一次的决定"),
    "keys": ("Keyboard", "键盘"),
    "key-j": ("next", "下一条"),
    "key-k": ("previous", "上一条"),
    "key-a": ("approve", "批准"),
    "key-e": ("edit", "修改"),
    "key-r": ("reject", "拒绝"),
    "key-u": ("undo", "撤销"),
    "key-help": ("this help", "本帮助"),
    "said.approve": ("Approved.", "已批准。"),
    "said.edit": ("Approved in your words.", "已按您的表述批准。"),
    "said.reject": ("Rejected.", "已拒绝。"),
    "said.undo": ("Taken back; it waits again.", "已撤销，重新待审。"),
    "said.nothing-to-undo": ("There is nothing to take back.", "没有可以撤销的决定。"),
    "said.changed-since": (
        "Not taken back: the record was changed since.",
        "未撤销：该记录此后又有改动。",
    ),
    "said.revert": ("The earlier text holds again.", "已恢复为先前的文本。"),
    "said.skipped": ("Nothing had to be changed.", "无需改动。"),
    "said.delete": (
        "Deleted. It is found no more, and can be brought back.",
        "已删除。不再被找到，可以恢复。",
    ),
    "said.restore": ("Brought back.", "已恢复。"),
    "said.waits-again": ("It waits for review again.", "已重新进入待审。"),
    "said.sign-out": ("You are signed out.", "您已退出。"),
    # turns
    "turns-lead": (
        "Which reader was given what from memory, turn by turn.",
        "每一轮中，哪个读者从记忆里得到了什么。",
    ),
    "turns-empty": ("No turn has read memory yet.", "还没有哪一轮读取过记忆。"),
    "turns-empty-hint": (
        "Run a graph with memory; each note that it injects appears here.",
        "运行一个带记忆的图，它注入的每条摘记都会出现在这里。",
    ),
    "turn-gone": ("Nothing is kept of this turn.", "没有保留这一轮的内容。"),
    "run": ("Run", "运行"),
    "session": ("Session", "会话"),
    "readers": ("Readers", "读者"),
    "picture": (
        "What memory gave to whom: choose a line to see it",
        "记忆把什么给了谁：选择一条线查看",
    ),
    "given-to": ("Given to {reader}", "给了 {reader}"),
    "a-search": ("a search", "一次搜索"),
    "a-note": ("a note", "一条摘记"),
    "degraded": ("degraded", "降级"),
    "shown": ("Handed out", "给出的"),
    "dropped": ("Left out, and why", "未给出的及原因"),
    "shown-none": ("Nothing was handed out.", "什么也没有给出。"),
    "dropped-none": ("Nothing was left out.", "没有略去任何内容。"),
    "parts": ("What makes the score", "得分的构成"),
    # record
    "versions": ("Versions", "各版本"),
    "earlier-versions.one": (
        "{n} earlier version is not shown here; `supervisor-memory show` has it.",
        "另有 {n} 个更早的版本未在此显示；见 `supervisor-memory show`。",
    ),
    "earlier-versions": (
        "{n} earlier versions are not shown here; `supervisor-memory show` has them.",
        "另有 {n} 个更早的版本未在此显示；见 `supervisor-memory show`。",
    ),
    "valid-time": ("When it was valid", "有效时间"),
    "valid-from": ("from {since}", "自 {since}"),
    "valid-between": ("{since} to {until}", "{since} 至 {until}"),
    "valid-never": ("It was valid at no time.", "从未生效。"),
    "source": ("Source", "来源"),
    "source-class": ("Said by", "由谁说出"),
    "speaker": ("Speaker", "说话者"),
    "said-in": ("said in session {session}", "说于会话 {session}"),
    "messages": ("What was said", "原话"),
    "readings": ("Who read it", "谁读过"),
    "readings-none": ("Nobody has read it, as far as the log goes.", "日志中没有人读过它。"),
    "decisions": ("What was done to it", "对它做过什么"),
    "tags": ("Tags", "标签"),
    "metadata": ("Metadata", "元数据"),
    "subject": ("About", "关于"),
    "importance": ("Importance", "重要性"),
    "created": ("Said", "说于"),
    "updated": ("Changed", "改于"),
    "expires": ("Expires", "到期"),
    "hash": ("Audit row", "审计行"),
    "revert": ("Go back to this text", "恢复为此文本"),
    "delete": ("Delete this record", "删除此记录"),
    "delete-lead": (
        "It will be found no more. Its versions are kept, and you can bring it back.",
        "它将不再被找到。各版本会保留，可以恢复。",
    ),
    "restore": ("Bring it back", "恢复"),
    "forget": ("Erase this user for good", "彻底抹去此用户"),
    "forget-lead": (
        "All records of {user} with all their versions, and their traces in the files, will be removed. "
        "Nothing brings them back.",
        "{user} 的所有记录及其全部版本，连同文件中的痕迹，都将被移除，且无法恢复。",
    ),
    "forget-held": ("What would be removed", "将被移除的内容"),
    "forget-type": ("Type the user id to confirm", "请输入用户标识以确认"),
    "forget-mismatch": (
        "That is not the user id; nothing was removed.",
        "与用户标识不符；没有移除任何内容。",
    ),
    "receipt": ("Receipt", "回执"),
    "receipt-of": ("Erased: {user}", "已抹去：{user}"),
    "receipt-at": ("Erased at", "抹去时间"),
    "receipt-pending": ("Pending", "未完成"),
    "receipt-elsewhere": ("Out of reach of this store", "本存储无法触及之处"),
    "receipt-complete": ("Nothing is left that the store can remove.", "存储能移除的都已移除。"),
    "receipt-gone": (
        "This receipt is no longer kept; the audit log has the erasure.",
        "此回执已不再保留；审计日志中有这次抹去。",
    ),
    # preview
    "preview-lead": (
        "The note an agent would be given for a question, with these limits. Nothing is changed, and no "
        "injection is logged.",
        "在这些限制下，针对一个问题，agent 会得到的摘记。不作任何改动，也不记为一次注入。",
    ),
    "preview-empty": (
        "Name a user and a question to see the note.",
        "填写用户和问题，即可查看摘记。",
    ),
    "question": ("Question", "问题"),
    "agent-hint": ("empty: the supervisor", "留空：supervisor"),
    "max-tokens": ("Most tokens", "token 上限"),
    "threshold": ("Least relevance", "最低相关性"),
    "top-k": ("Most records", "记录上限"),
    "note": ("The note", "摘记"),
    "note-none": ("There would be no note: nothing relevant is known.", "不会有摘记：没有相关的记忆。"),
    "not-asked": (
        "The router would not read memory for this text.",
        "路由判定：这段文本无需读取记忆。",
    ),
    # health
    "health-lead": ("Whether memory works, and how well.", "记忆是否正常，以及运行得如何。"),
    "backend": ("Store", "存储"),
    "works": ("works", "正常"),
    "fails": ("does not work", "不正常"),
    "persistent": ("Keeps what it has when the process ends", "进程结束后仍保留"),
    "location": ("Where", "位置"),
    "journal": ("Journal", "预写日志（journal）"),
    "journal-none": (
        "This store has no journal: nothing ever waits for it.",
        "此存储没有预写日志：没有内容需要等待。",
    ),
    "backlog.begun": ("begun", "已开始"),
    "backlog.waiting": ("waiting", "等待中"),
    "backlog.dead": ("dead letters", "死信"),
    "backlog.erasures": ("erasures", "抹去"),
    "queue": ("Queue", "读取队列"),
    "queue.waiting": ("waiting to be read", "等待读取"),
    "queue.dead": ("failed three times", "三次失败"),
    "chain": ("Audit chain", "审计链"),
    "chain-ok.one": ("The only row is as it was written.", "仅有的一行与写入时一致。"),
    "chain-ok-all.one": ("The only row is as it was written.", "仅有的一行与写入时一致。"),
    "chain-ok": ("The last {n} rows are as they were written.", "最后 {n} 行与写入时一致。"),
    "chain-ok-all": ("All {n} rows are as they were written.", "全部 {n} 行与写入时一致。"),
    "chain-broken": ("The audit log is not as it was written.", "审计日志与写入时不一致。"),
    "chain-whole": ("Verify the whole chain", "校验整条链"),
    "notes-a-day": ("Notes a day; degraded ones are dark", "每日摘记数；深色为降级"),
    "notes-a-day-none": ("No notes in the last {n} days.", "最近 {n} 天没有摘记。"),
    "searches-a-day": ("Searches a day; degraded ones are dark", "每日搜索次数；深色为降级"),
    "searches-a-day-none": ("No searches in the last {n} days.", "最近 {n} 天没有搜索。"),
    "counts": ("Active records by kind", "各类型的有效记录"),
    "counts-empty": ("No records yet.", "还没有记录。"),
    "statuses": ("Records by status", "各状态的记录"),
    "total": ("total", "合计"),
    # search and browse
    "browse-lead": (
        "Words search the active records of one user, as a graph would; without words the newest come first.",
        "填写文字则像图那样搜索一位用户的有效记录；不填则最新的在前。",
    ),
    "words": ("Words", "文字"),
    "since": ("Said since", "说于此后"),
    "until": ("Said until", "说于此前"),
    "find": ("Find", "查找"),
    "browse-empty": ("No record is like that.", "没有这样的记录。"),
    "browse-empty-hint": (
        "Try fewer conditions, another status, or another user.",
        "请减少条件，或换一个状态、换一位用户。",
    ),
    "store-empty": ("Nothing is remembered yet.", "还没有记住任何内容。"),
    "browse-user-needed": ("To search by words, name a user.", "按文字搜索时，请填写用户。"),
    "row-alone": ("{n}", "第 {n} 条"),
    "rows-from-to": ("{first} to {last}", "第 {first} 至 {last} 条"),
    # what is wrong
    "error": ("This did not work", "未能完成"),
    "error.400": ("The page asked for something that cannot be.", "请求的内容不成立。"),
    "error.403": ("Your token does not allow this.", "您的令牌不允许这样做。"),
    "error.404": ("There is no such thing here, or it is not yours to see.", "这里没有，或您无权查看。"),
    "error.409": ("Somebody else was faster, or it was decided before.", "别人先行一步，或此前已有决定。"),
    "error.413": ("This is too large.", "内容过大。"),
    "error.422": ("Something in the form cannot be.", "表单中有内容不成立。"),
    "error.503": ("The store does not answer as it should; try again.", "存储未能正常应答，请重试。"),
    "error-no-page": ("There is no such page.", "没有这样的页面。"),
    "error-form-old": (
        "This form is older than the server, or from elsewhere. Go back, reload the page, and do it again.",
        "此表单来自服务启动之前或其他地方。请返回并刷新页面后重试。",
    ),
    # codes
    "kind.user-profile": ("preference", "偏好"),
    "kind.domain-facts": ("definition", "定义"),
    "kind.task-traces": ("conclusion", "结论"),
    "kind.tool-effects": ("artifact", "产物"),
    "kind.experience": ("experience", "经验"),
    "kind.identity": ("identity", "身份"),
    "status.active": ("active", "有效"),
    "status.pending": ("waiting", "待审"),
    "status.stale": ("replaced", "已被取代"),
    "status.compressed": ("in a summary", "已并入摘要"),
    "status.quarantined": ("quarantined", "已隔离"),
    "status.deleted": ("deleted", "已删除"),
    "source.user": ("the user", "用户"),
    "source.agent": ("an agent", "agent"),
    "source.tool": ("a tool", "工具"),
    "source.system": ("the system", "系统"),
    "decision.added": ("becomes a new record", "成为新记录"),
    "decision.merged": ("joins what is known", "并入已有记录"),
    "decision.updated": ("takes the place of what is known", "取代已有记录"),
    "decision.appended": ("is added to what is known", "附加到已有记录"),
    "decision.skipped": ("changes nothing", "不作改动"),
    "decision.pending": ("goes on waiting", "继续待审"),
    "decision.refused": ("cannot be approved as it is", "无法按原样批准"),
    "why.about-the-user-by-agent": ("an agent says it of the user", "agent 所说的关于用户的话"),
    "why.about-the-user-by-tool": ("a tool says it of the user", "工具所说的关于用户的话"),
    "why.unsure-who-said-it": (
        "the store could not tell who said it",
        "存储当时无法判断是谁说的",
    ),
    "why.contradicts-the-user": ("it denies what the user said", "与用户说过的相矛盾"),
    "why.instruction-like": ("it reads like an instruction", "读起来像一条指令"),
    "why.low-confidence": ("its extractor was not sure", "提取时不够确定"),
    "why.asked-for": ("review was asked for", "要求人工审核"),
    "why.every-candidate": ("everything waits (MEMORY_REVIEW=all)", "一律待审（MEMORY_REVIEW=all）"),
    "part.relevance": ("relevance", "相关性"),
    "part.sim": ("meaning", "语义"),
    "part.coverage": ("words", "词语"),
    "part.fused": ("match", "匹配"),
    "part.decay": ("recency", "新近"),
    "part.source": ("source", "来源"),
    "part.importance": ("importance", "重要性"),
    "part.reads": ("reads", "读取次数"),
    "part.named": ("defines a word", "定义了用词"),
    "removed.records": ("records", "记录"),
    "removed.versions": ("versions", "版本"),
    "removed.vectors": ("vectors", "向量"),
    "removed.accesses": ("accesses", "读取记录"),
    "removed.record_keys": ("keys", "密钥"),
    "removed.pseudonyms": ("pseudonyms", "化名"),
    "removed.events": ("queued events", "排队事件"),
    "removed.notes": ("logged notes", "摘记日志"),
    **{f"reason.{code}": (told, _REASONS_IN_CHINESE.get(code, "")) for code, told in REASONS.items()},
}

WORDS: Final[Mapping[str, Mapping[Language, str]]] = MappingProxyType(
    {key: MappingProxyType(dict(zip(LANGUAGES, phrases, strict=True))) for key, phrases in _PHRASES.items()}
)


def worded(key: str, language: Language, **values: object) -> str:
    """A phrase, where `n` is 1 its `.one`; of a code that nobody has put into words, the code.

    Such a code is a reason of an operator's own.
    """
    phrase = WORDS.get(f"{key}.one") if values.get("n") == 1 else None
    phrase = phrase or WORDS.get(key)
    if phrase is None:
        return key.partition(".")[2] or key
    return phrase[language].format(**values) if values else phrase[language]


def preferred(accepts: str) -> Language:
    """The language of an Accept-Language header that is ours and weighs most; English where none is."""
    weights: dict[Language, float] = {}
    for entry in accepts.split(","):
        tag, _, weight = entry.strip().partition(";q=")
        for language in LANGUAGES:
            if tag.lower().partition("-")[0] == language:
                weights[language] = max(weights.get(language, 0.0), _number(weight or "1"))
    return max(weights, key=lambda each: weights[each]) if weights else "en"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
