"""Questions and the facts that answer them, on other subjects than the calibration pairs.

The Chinese ones say what the English ones at the same place say, so the two cross. Every fact answers one
question only.
"""

from collections.abc import Sequence

Pair = tuple[str, str]

ENGLISH: Sequence[Pair] = (
    ("When is the user's birthday?", "The user was born on 14 March"),
    ("What music does she listen to while working?", "The user puts on Bach when she needs to concentrate"),
    ("What car does he drive?", "The user bought a second-hand electric Renault"),
    ("Where did they go on holiday?", "The user spent last summer hiking in Norway"),
    ("What does the user do for a living?", "The user works as a nurse in a children's hospital"),
    ("Which database are we on?", "Production runs on PostgreSQL 16"),
    ("How should dates be written?", "The user wants dates formatted as year-month-day"),
    ("Is the user a vegetarian?", "The user has not eaten meat since 2015"),
    ("Which editor does he use?", "The user writes code in Vim with a dark theme"),
    ("How do active customers get counted?", "A customer is active if they ordered within the last 90 days"),
    ("What are the children called?", "The user has twins named Ada and Oscar"),
    ("Why was the last report rejected?", "The quarterly report came back because its totals did not add up"),
    ("What time zone is the user in?", "The user's clock is set to Eastern European time"),
    ("Any injuries I should know about?", "The user hurt his left knee while skiing"),
    ("What is she reading at the moment?", "The user is halfway through a novel by Elena Ferrante"),
    ("Who approves expenses?", "Spending over 500 euros has to be signed off by the head of department"),
    ("Which chart type does the user like?", "The user prefers bar charts to pie charts"),
    ("How did we fix the slow query?", "Adding an index on customer_id brought the query down to 20 ms"),
    ("What language is he studying?", "The user takes Japanese classes on Monday evenings"),
    ("Does the user sleep well?", "The user often lies awake until three in the morning"),
)

CHINESE: Sequence[Pair] = (
    ("用户的生日是哪天？", "用户出生于三月十四日"),
    ("她工作的时候听什么音乐？", "用户需要集中精神时会放巴赫"),
    ("他开什么车？", "用户买了一辆二手的雷诺电动车"),
    ("他们去哪里度假了？", "用户去年夏天在挪威徒步"),
    ("用户是做什么工作的？", "用户在儿童医院当护士"),
    ("我们用的是哪个数据库？", "生产环境运行在 PostgreSQL 16 上"),
    ("日期应该怎么写？", "用户希望日期采用年-月-日的格式"),
    ("用户吃素吗？", "用户从 2015 年起就没有吃过肉"),
    ("他用哪个编辑器？", "用户用深色主题的 Vim 写代码"),
    ("活跃客户怎么统计？", "最近 90 天内下过单的客户算作活跃"),
    ("孩子们叫什么名字？", "用户有一对双胞胎，名叫艾达和奥斯卡"),
    ("上一份报告为什么被退回？", "季度报告因为合计对不上而被打回"),
    ("用户在哪个时区？", "用户的时钟设为东欧时间"),
    ("有什么伤病需要我知道吗？", "用户滑雪时伤了左膝盖"),
    ("她最近在读什么书？", "用户正在看埃莱娜·费兰特的一本小说，看到一半"),
    ("报销由谁审批？", "超过 500 欧元的支出必须由部门主管签字"),
    ("用户喜欢哪种图表？", "用户更喜欢柱状图而不是饼图"),
    ("那个慢查询是怎么解决的？", "给 customer_id 加索引以后查询降到了 20 毫秒"),
    ("他在学哪门语言？", "用户每周一晚上去上日语课"),
    ("用户睡眠好吗？", "用户经常到凌晨三点还睡不着"),
)
