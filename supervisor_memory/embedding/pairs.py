"""Pairs to calibrate by: a query, and a memory that answers or repeats it.

Half of them are a question and the fact that answers it, half two wordings of one fact. Each pair has
a subject of its own, so that a query and the memory of another pair are unrelated. All are written in
the manner of memories, because unrelated memories are more alike than unrelated sentences: most begin
with "The user".

The first six of each language are the short set for embedders that charge by the call.
"""

from collections.abc import Mapping, Sequence

__all__ = ["PAIRS", "Pair"]

Pair = tuple[str, str]

ENGLISH: Sequence[Pair] = (
    ("Which drink should I order for her in the morning?", "The user starts every day with green tea"),
    (
        "Nightly backups go to the bucket in Frankfurt",
        "Backups are written each night to storage in Frankfurt",
    ),
    ("Does he have any food allergies?", "The user is allergic to peanuts and shellfish"),
    ("The user's sister is getting married in June", "His sister has her wedding this June"),
    ("What programming language does the team use?", "The backend team writes its services in Go"),
    ("The user is learning to play the cello", "He has been taking cello lessons"),
    ("Where does the customer live?", "The user moved to a flat in Lisbon last year"),
    (
        "Charts should use a colour-blind safe palette",
        "Plots need colours that colour-blind people can tell apart",
    ),
    ("Who do I contact about invoices?", "Billing questions are handled by Marta in accounting"),
    ("The deployment failed because a certificate had expired", "An expired certificate broke the release"),
    ("What does the user do for exercise?", "The user runs ten kilometres along the river on weekends"),
    ("Answers should be short and in bullet points", "The user wants brief replies formatted as lists"),
    ("How should revenue be computed?", "Revenue means gross sales minus refunds and discounts"),
    ("The user has a dog called Biscuit", "Biscuit is the name of the user's puppy"),
    ("Is there a seat preference for flights?", "The user always books an aisle seat near the front"),
    ("The orders table is partitioned by month", "Orders are split into monthly partitions in the database"),
    ("What kind of films do they watch?", "The user loves old black-and-white detective movies"),
    ("The meeting moved from Tuesday to Thursday", "We now meet on Thursdays instead of Tuesdays"),
    ("Which size of shirt does he wear?", "The user's clothes size is extra large"),
    ("The API allows a hundred requests a minute", "Rate limit of the interface: 100 calls per minute"),
    (
        "What is the budget for the kitchen?",
        "The user can spend at most 15,000 euros on renovating the kitchen",
    ),
    ("The user's grandfather was a lighthouse keeper", "His granddad used to look after a lighthouse"),
    (
        "How do I make the test suite faster?",
        "Running the tests in parallel with four workers halves the time",
    ),
    ("The user is afraid of heights", "She has a fear of high places"),
)

CHINESE: Sequence[Pair] = (
    ("早上应该给她点什么喝的？", "用户每天早晨都要喝一杯绿茶"),
    ("每天夜里备份到法兰克福的存储桶", "备份每晚写入位于法兰克福的存储"),
    ("他对什么食物过敏？", "用户对花生和贝类过敏"),
    ("用户的妹妹六月份结婚", "他妹妹今年六月办婚礼"),
    ("团队用什么编程语言？", "后端团队用 Go 语言写服务"),
    ("用户正在学拉大提琴", "他最近在上大提琴课"),
    ("这位客户住在哪里？", "用户去年搬到了里斯本的一套公寓"),
    ("图表要用色盲友好的配色", "画图时颜色要让色盲的人也能分清"),
    ("发票的问题找谁？", "账单方面的事情由财务部的马塔负责"),
    ("证书过期导致上线失败", "这次发布出错是因为证书已经到期"),
    ("用户平时怎么锻炼身体？", "用户周末沿着河边跑十公里"),
    ("回答要简短，用要点列出来", "用户希望答复精炼，并且用列表的形式"),
    ("营收应该怎么计算？", "营收等于销售总额减去退款和折扣"),
    ("用户养了一只叫饼干的狗", "用户家的小狗名字叫饼干"),
    ("坐飞机喜欢什么座位？", "用户订机票总是选靠前的过道位"),
    ("订单表按月份分区", "数据库里的订单按月拆成多个分区"),
    ("他们爱看什么样的电影？", "用户喜欢黑白的老侦探片"),
    ("会议从周二改到了周四", "现在我们不在星期二而在星期四开会"),
    ("他穿多大号的衬衫？", "用户的衣服尺码是特大号"),
    ("接口每分钟允许一百次请求", "接口限流：每分钟最多调用 100 次"),
    ("装修厨房的预算是多少？", "用户翻新厨房最多能花一万五千欧元"),
    ("用户的祖父当过灯塔看守人", "他爷爷以前是看守灯塔的"),
    ("怎样让测试跑得更快？", "用四个进程并行运行测试可以节省一半时间"),
    ("用户恐高", "她害怕站在很高的地方"),
)

PAIRS: Mapping[str, Sequence[Pair]] = {"en": ENGLISH, "zh": CHINESE}
