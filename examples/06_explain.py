"""Why was this remembered just now, and why was that not? Every candidate of a search, in a table.

Run: .venv/bin/python examples/06_explain.py
Everything runs offline. The same from the shell: supervisor-memory search "…" --user ada --explain
"""

import time

from supervisor_memory import Scope, Settings, SupervisorMemory

# Eight records: no fact says what another says, in either language; those would be merged into one.
FACTS = (  # text, kind, who said it, days ago
    ("GMV excludes refunds and cancelled orders.", "domain-facts", "user", 200),
    ("GMV of the north fell by 12 % in March, because refunds doubled.", "task-traces", "agent", 60),
    ("csv file: out/refunds_march.csv (31 rows)", "tool-effects", "tool", 60),
    ("Churn means no login for 90 days.", "domain-facts", "user", 10),
    ("Use tables by default.", "user-profile", "user", 300),
    ("成交额不含退款和取消的订单。", "domain-facts", "user", 200),
    ("五月南区成交额上涨了 8%，因为促销。", "task-traces", "agent", 60),
    ("活跃指三十天内登录过。", "domain-facts", "user", 10),
)
ENGLISH, CHINESE = "Does GMV include refunds?", "成交额包含退款吗？"

# Reads English and Chinese. Without the extra `local`, say "none": then words alone are compared.
memory = SupervisorMemory(Settings(embedding_model="multilingual-e5-small", search_timeout_ms=20_000))
for text, kind, source, days_ago in FACTS:
    said = time.time() - days_ago * 86_400
    memory.write(text, user_id="ada", kind=kind, source_class=source, created_at=said)

for question in (ENGLISH, CHINESE):
    print(f"\n# A search for {question!r}: the best two, and what became of the others\n")
    print(memory.search(question, user_id="ada", limit=2, explain=True))

print("\n# A note for the supervisor: its preference comes first, whatever is asked\n")
note = memory.recall(ENGLISH, Scope("ada"), explain=True)
print(note.hits)
print(f"\n{note.text}")

print("\n# Nothing relevant is an answer too\n")
print(memory.search("Who won the football match?", user_id="ada", explain=True))

print("\n# What the access log keeps of all this: no text, but who saw which record, for what reason\n")
for row in memory.audit.accesses(3, user_id="ada"):
    print(row.op, row.record_id, f"rank {row.rank}", f"score {(row.score_milli or 0) / 1000:.2f}", row.reason)
