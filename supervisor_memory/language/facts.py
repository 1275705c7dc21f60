"""What people tell of themselves and what they decide: the words that give it away, English and Chinese.

By class, not by wording: who one is, where and with whom one lives, what one cannot eat, what one always
does, what has been decided, what has to be put right. All patterns meet text as `phrases` says.
"""

import re

from supervisor_memory.language.phrases import MASK, Rules, lazily, rule

__all__ = [
    "CORRECTION",
    "DECISION",
    "FACTS",
    "HOUSE_RULE",
    "IMPERATIVE",
    "PASSING",
    "STATES_SOMETHING",
    "UNDER_CONDITION",
    "UPON_ASKING",
    "affirmed",
    "retracted",
    "speaks_of_forgetting",
]

# --- people, bodies, places -------------------------------------------------------------------------

_KIN = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|kids?|child(?:ren)?|sons?|daughters?|"
    r"twins|bab(?:y|ies)|"
    r"toddlers?|mother|mom|mum|father|dad|parents|brothers?|sisters?|siblings|grand(?:ma|pa|mother|father|"
    r"parents|"
    r"children|kids|son|daughter)|aunt|uncle|cousins?|nephews?|nieces?|flatmates?|roommates?|dogs?|cats?|"
    r"pupp(?:y|ies)|kittens?|"
    r"horses?|parrots?|rabbits?|pets?)"
)
_KIN_ZH = (
    r"(?:爱人|老婆|老公|太太|妻子|丈夫|男朋友|女朋友|对象|伴侣|儿子|女儿|孩子|小孩|妈妈?|爸爸?|父母|母亲|"
    r"父亲|爷爷|奶奶|外公|外婆|"
    r"姥姥|姥爷|哥哥?|姐姐?|弟弟?|妹妹?|室友|侄子|侄女|外甥|岳父|岳母|公公|婆婆)"
)
_BODY = (
    r"(?:allerg\w*|intoleran\w*|asthma|diabetes|celiac(?: disease)?|coeliac(?: disease)?|epilepsy|"
    r"migraines?|adhd|"
    r"autism|dyslexia|arthritis|anxiety|depression|insomnia|hypertension|high blood pressure|"
    r"a (?:bad |weak |slipped )?(?:back|knee|heart|stomach|disc)\b|a [\w -]{0,20}(?:condition|disorder|"
    r"disease|phobia)|"
    r"gout|reflux|eczema|anaemia|anemia|vertigo|a pacemaker|a hearing aid|food restrictions?|dietary \w+)"
)
_TRAIT = (
    r"(?:allergic|intolerant|vegan|vegetarian|pescatarian|flexitarian|diabetic|asthmatic|celiac|coeliac|"
    r"epileptic|pregnant|"
    r"colou?r[- ]?blind|blind|deaf|hard of hearing|dyslexic|autistic|(?:left|right)[- ]handed|lactose|gluten|"
    r"married|divorced|single|engaged|widowed|retired|self-employed|freelance|unemployed|jewish|muslim|"
    r"christian|"
    r"hindu|buddhist|kosher|halal|teetotal|sober|bilingual|fluent in|responsible for|in charge of|"
    r"afraid of (?!i\b|that\b|we\b)|scared of|from (?!the (?:beginning|start)\b)(?-i:[A-Z])|originally from|"
    r"born (?:in|on)|raised in|\d{1,3}(?: years old)?(?=[,;.! ]*(?:$|and\b|,|;))|"
    r"\d{1,3} years old|new to [a-z]|a native|on (?:a|the) [\w -]{0,20}diet\b)"
)
_LASTING = (
    r"(?:(?:now |still |mostly |currently |also |both |all |actually )*(?:live|work|study|teach|studied|"
    r"worked|"
    r"commute|volunteer|manage|lead|supervise|head|own|speak|report to|speciali[sz]e|was born|grew up|"
    r"come from|moved to|moved from|"
    r"relocated|retired|graduated|majored|drive an?|ride an?|play (?:the|in)|practi[sc]e|breed|raise|coach|"
    r"belong to|"
    r"run (?:a|an|my|our|marathons)|wake up|get up|go to bed|start work|finish work|work out|wear|weigh|"
    r"need glasses))\b"
)
_ABSTAIN = (
    r"(?:eat|drink|smoke|drive|fly|tolerate|digest|have (?:any )?(?:dairy|gluten|sugar|alcohol|caffeine|"
    r"meat)|take (?:sugar|milk)|touch|do (?:dairy|gluten|spicy))"
)
_NOT_OURS = (
    r"(?:question|problem|issue|point|guess|mistake|bad|fault|quer(?:y|ies)|code|script|error|apolog(?:y|"
    r"ies)|result|"
    r"screen|internet|connection|wi-?fi|laptop|computer|phone|battery|god|goodness|dear|word|feeling|"
    r"impression|"
    r"understanding|bet|turn|concern|worry|hope|idea|thought|suggestion|advice|answer|input|next|first|last|"
    r"request|test|build|page|browser|file|head|lord|pleasure|only|current)"
)

_SINCE = r"(?: (?:just|recently|now|finally|since|already|also))*"
_AIDS_ZH = r"(?:助听器|眼镜|隐形|假牙|轮椅|拐杖|义肢|起搏器|牙套|支架|护具|护膝|人工耳蜗)"
_BUSINESS_ZH = (
    r"(?:店|铺|公司|馆|厂|厅|诊所|工作室|超市|学校|农场|果园|酒店|民宿|机构|事务所|培训班|书屋|网站|车队)"
)
_FEELS = (
    r"(?:nervous|tired|anxious|dizzy|sleepy|sick|uneasy|seasick|claustrophobic|stressed|restless|itchy|"
    r"uncomfortable|queasy|drowsy)"
)
_FEELS_ZH = (
    r"(?:累|紧张|头疼|头晕|头痛|焦虑|烦躁|心烦|不舒服|难受|犯困|分心|反胃|失眠|心慌|害怕|想吐|过敏|发慌)"
)

FACTS: Rules = (
    (
        "personal-fact",
        rule(
            rf"\b(?:i|we)(?:'ve| have){_SINCE} (?:moved|relocated|transferred|emigrated|settled|switched) "
            r"(?:back |over )?(?:to|in|into|from) (?:(?-i:[A-Z])\w|an? (?:new |bigger |smaller )?(?:flat|"
            r"house|"
            r"apartment|city|town|village|country|job|team|company|office|school)\b)",
            rf"\b(?:i|we)(?:'ve| have){_SINCE} (?:become (?:an? [a-z]|vegan|vegetarian|diabetic|allergic|"
            rf"self-employed|deaf|blind)|turned \d|got(?:ten)? (?:married|"
            rf"engaged|"
            r"divorced|promoted)|given up|taken up|adopted an? |retired|quit (?:smoking|drinking|my job)|"
            r"(?:joined|left) (?:(?-i:[A-Z])\w|(?:the|my) [\w-]+ (?:team|department|company|group))|"
            r"changed (?:jobs?|my (?:name|number|address|e-?mail)|schools?|teams?)|started (?:a new job|"
            r"at (?-i:[A-Z])))",
            rf"\b(?:my|our) (?:\w+ ){{0,2}}{_KIN} (?:starts?|begins?|attends?|finish(?:es)?|graduates?|"
            rf"teach(?:es)?|"
            r"drives?|eats?|drinks?|sleeps?|suffers?|swims?|sings?|trains?|commutes?|cooks?|skis?|rides?)\b",
            r"\bmy (?:[\w-]+ ){1,2}(?:wrong|incorrectly)[,;.:]? (?:it(?:'s| is)|it should be|"
            r"the right one is) \w",
            r"我(?:们?家?)?[^,;。是要想会能把]{0,8}(?:从[^,;。]{1,10})?(?:搬(?:到|去|来|回|进)|迁(?:到|往|"
            r"回)|移民到?|"
            r"调(?:到|去|往))(?:了)?(?!这|那|第|下|上)[^,;。]{2,}",
            r"我(?:已经?|刚刚?|最近|上个?[月周]|今年|去年|前年|也)*(?:跳槽|转岗|转行|入职(?!那|当)|"
            r"加入了?(?=[^,;。]{1,10}(?:公司|团队|部门|小组|大学|"
            r"学校|医院|银行|协会|俱乐部|单位|律所|工会))|离职|辞职|升(?:为|职)|"
            r"改(?:名|姓|行)|换(?:了)?(?:个|一?份)?(?:新)?(?:工作|公司|手机号|号码|邮箱|部门|城市|"
            r"单位))[^,;。吗]{0,12}",
            rf"我(?:自己|们?家|和[^,;。]{{1,4}})?(?:还|在[^,;。]{{1,8}})?(?:开(?:了|着)?|经营着?|创办了?|"
            rf"办了|打理着?)"
            rf"(?:一|两|三)?(?:家|间|个|所|片)[^,;。]{{0,10}}{_BUSINESS_ZH}(?![^,;。]{{0,2}}的)",
            rf"我(?:一直|平时|长期|现在|得|要|必须|常年)*(?:戴|穿|拄|坐|装|用|带)(?:着|了|"
            rf"有)?{_AIDS_ZH}(?!在|看|来|去|呢)",
            r"我(?:本人|自己)?(?:是|的?血型是?) ?(?:A|B|AB|O) ?型|我(?:属|"
            r"是)[^,;。]{1,4}座(?:的)?(?=[,;。]|$)",
            r"我的?(?:名字|姓名|名|姓|生日|邮箱|电话|地址|公司|部门|职位)[^,;。]{0,6}(?:写|叫|念|拼|记|搞|"
            r"弄|填|打)错"
            r"了?[,;。 ]*(?:应该)?(?:是|叫|改)\S",
            r"\b(?:we're|we are) (?:based|located|headquartered|from|in)\b (?-i:[A-Z])",
            rf"我(?:的)?{_KIN_ZH}[^,;。]{{0,6}}(?:有|是|在|今年|对|不|喜欢|爱|怕|上|叫|住|\d)(?!什么|没有)",
            rf"我(?:和|跟|与)(?:我)?(?:的)?{_KIN_ZH}[^,;。]{{2,}}(?<!了)[。!]*$",
            r"我(?:有点|有些|有|严重|天生|从小|是)?[^,;。]{0,4}(?:不耐受|过敏体质)",
            r"我(?:现在|目前|一直)*在(?!帮|给|想|看|做|等|写|改|查|跑|用|试)[^,;。]{1,24}(?:学校|中学|小学|"
            r"大学|学院|幼儿园|医院|诊所|公司|银行|"
            r"机构|研究所|工厂|单位|律所|事务所|餐厅|酒店|部门|团队)(?:里)?(?:教|当|做|管|负责|带|搞|跑|卖|"
            r"画|写)\S",
            r"我们?(?:公司|办公室|总部|团队|学校|家)(?:就)?在[^,;。]{1,12}(?=[,;。!]|$)",
            r"我[^,;。是]{0,3}(?:预算|鞋码|尺码|身高|体重|血型|年收入|工资)(?:大概|大约|一共)?(?:是|有|为|"
            r"在|\d)",
            rf"\bi(?:'m| am)(?: (?:also|still|actually|really|severely|very|mildly|quite|highly|deathly|"
            rf"strictly|mostly|"
            rf"currently|now|not|both|a bit))* {_TRAIT}",
            r"\b(?:i(?:'m| am)|as)(?: (?:also|still|actually|now|not|currently))* an? (?!bit\b|little\b|"
            r"tad\b|touch\b|few\b|"
            r"couple\b|lot\b|while\b|mess\b|fool\b|idiot\b|moron\b|genius\b|bad\b|good\b|big\b|huge\b|"
            r"minute\b|"
            r"(?:\w+ )?(?:confused|lost|worried|late|tired|unsure|busy)\b)"
            r"(?:[\w'-]+ ?){1,4}(?:(?=$|[,;.!])|\b(?:at|in|for|from|of|by|with|who|and|on|based|working|but|"
            r"since|so)\b)(?<!^as)",
            rf"\b(?:i|we)(?: have|'ve got|'ve| both have| also have| have got)(?: also| had|"
            rf" always had)* (?:an? |two |three |four |five |\d |one |no |some |"
            rf"several |my |many |severe |mild |chronic |bad |type [12] )*(?:[\w-]+ ){{0,2}}(?:{_KIN}|"
            rf"{_BODY})\b",
            r"\b(?:i|we)(?:'ve| have) (?:always |never |also )?(?:been|had|lived|worked|owned|used|played|"
            r"studied|followed) "
            r"(?!.*\b(?:minutes?|mins?|hours?|seconds?|days?|while)\b)[^,;]{1,60}\b(?:since|"
            r"for) (?:\w+ )?(?:i was|we were|over|more than|about|almost|nearly|\d|"
            r"two|three|four|"
            r"five|six|seven|eight|nine|ten|a (?:year|decade)|years|birth|childhood|college|january|"
            r"february|march|april|"
            r"may|june|july|august|september|october|november|december|my)",
            rf"\b(?:i|we) (?:can't|cannot|can not|don't|do not|never|no longer|won't|quit|gave up|"
            rf"stopped) (?:really |ever )?"
            rf"{_ABSTAIN}(?! (?:this|that|it|these|those|the|them|you)\b)",
            r"\b(?:i|we) (?:quit|gave up|stopped) (?:smoking|drinking|eating \w+|coffee|sugar|alcohol|"
            r"caffeine|meat)\b",
            rf"(?:^|[,;:.] ?|\b(?:and|but|so|because|since|as|that) )(?:i|we) {_LASTING}(?! (?:it|this|that|"
            rf"on (?:it|this|that)|with "
            r"(?:it|this|that)|for me|fine|now$)\b)",
            rf"\b(?:my|our) (?:\w+ ){{0,2}}{_KIN}(?:'s| and| (?:\w+ )?(?:is|are|has|have|had|was|lives?|"
            rf"works?|loves?|likes?|"
            r"hates?|prefers?|goes|go|needs?|can't|cannot|can|doesn't|don't|turns?|speaks?|studies|plays?|"
            r"just turned))\b",
            rf"\b(?:my|our) (?!(?:[\w-]+ )?{_NOT_OURS}\b)(?:[\w'-]+ ){{1,4}}(?:is|are) (?:called |named |"
            rf"now |always |on |in |at |due |"
            rf"(?:on |by )?the |an? |about |around |between |under |over |set to |based in |"
            rf"every )*(?:(?-i:[A-Z])\w|\d|{MASK}|"
            r"(?:an? |the )\w+ \w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day)",
            r"\b(?:you can reach me|reach me|my (?:e-?mail|phone|number|address)) (?:at|is|on)\b",
            r"\b(?:people|everyone|friends|they|colleagues) (?:usually |always |all )?call me (?-i:[A-Z])",
            r"\b(?:he|she|it|they) and i\b(?!.)",
            r"我(?:们全?家|的?(?:妈妈?|爸爸?|父亲|母亲|爷爷|奶奶|儿子|女儿|孩子|老婆|老公|太太|妻子|丈夫|"
            r"男朋友|女朋友|"
            r"哥哥?|姐姐?|弟弟?|妹妹?|家里?人?))?(?:从小|一直|有点|严重|比较|本人|"
            r"天生)?对[^,;。]{1,20}(?:过敏|不耐受|有阴影)",
            r"我(?:们)?(?:从来|一直|平时|基本|现在|是|一般|也|因为[^,]{1,12}|已经|坚持|早就|"
            r"都){0,3}(?:吃全?素|素食|纯素|戒[烟酒糖了]|忌口|"
            r"(?:不|从不|不能|不可以|没法|不太能|不会|不敢)(?:吃|喝|抽|碰(?!到|见)|开车|坐飞机|骑|沾)(?!这|"
            r"那|了|完|到|饱|的消|亏|得消))",
            r"我(?:们)?(?:家)?(?:患|得)?有(?:严重|轻微|先天性?|慢性|遗传性?|点)?的?[^,;。]{0,8}"
            r"(?:糖尿病|高血压|低血糖|哮喘|痛风|心脏病|胃病|鼻炎|颈椎病|贫血|失眠|恐高|恐惧症|不耐受|色盲|"
            r"色弱|近视|[^问毛]病|过敏|偏头痛|抑郁症?|"
            r"焦虑症)",
            r"我(?:们)?(?:家)?(?:里)?(?:还)?(?:有|养了?)(?:一|两|二|三|四|五|六|\d+|几|好几)(?:个|只|条|位|"
            r"匹|对|名|双)[^,;。]{0,6}"
            r"(?:孩子|小孩|儿子|女儿|娃|儿女|宝宝|双胞胎|猫|狗|兔子?|鸟|鹦鹉|仓鼠|乌龟|弟弟|妹妹|哥哥|姐姐|"
            r"室友)",
            r"我(?:们)?(?:现在|目前|已经|一直|平时|从小|刚刚?|长期|全家)*(?:住在?(?!院)|家住|家在|老家|"
            r"定居|常住|来自|出生[于在]|生于|毕业于?|就职于|"
            r"任职于?|供职于?|从事|移居|搬(?:到|去|来)(?!下一|上一|这|那)|主修|专业是|就读|在读|"
            r"籍贯)[^,;。]{1,}",
            r"我(?:现在|目前|已经|一直)*在(?!帮|给|想|看|做|等|写|改|查|跑|用|试)[^,;。]{1,24}(?:工作|上班|"
            r"任职|读(?:书|研|博|大|高|初|本|硕)|念书|"
            r"上学|教书|实习|当\S|"
            r"担任|做[^,;。]{0,12}(?:师|员|主管|经理|总监|运营|财务|销售|开发|设计|研究|会计|顾问|程序|"
            r"老板|采购|人事|生意|支持|客服|测试|产品|市场|编辑|"
            r"行政|助理|分析|管理))",
            r"我(?:现在|目前|以前)?(?:负责|分管|主管|带(?:领)?(?:一个|着)?[^,;。]{0,8}(?:团队|小组|"
            r"人))(?!人是)[^,;。]*",
            r"我(?:本人|自己|其实|就|现在|已经|也)?是(?!说|想|不是|要|在|问|指|为了|觉得|怕|谁|打算|认真|"
            r"第)[^,;。]{0,14}?"
            r"(?:师|员|生|工|医|警察|军人|经理|总监|主管|会计|运营|销售|博士|教授|老板|家长|妈妈|爸爸|"
            r"主义者|左撇子|色盲|色弱|夜猫子|新手|初学者|"
            r"素食者?|过敏体质|人|党|族|者|控|兵)(?=[,;。!]|$)",
            r"我(?:今年)?[\d一二三四五六七八九十]{1,3}岁|我属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|我(?:已经|刚|还|"
            r"目前)*(?:结婚|已婚|未婚|单身|离婚|离异|怀孕|退休|"
            r"订婚|当(?:爸|妈)|是左撇子|入职)",
            r"我(?:的|们的|们|们?家的?|们?(?:部门|公司|团队|组|学校|单位)的?)(?!问题|意思|错|天|妈呀|代码|"
            r"电脑)[^,;。是叫]{0,10}"
            r"(?:负责人|老板|上司|领导|经理|主管|导师|牙医|医生|律师|会计|房东|太太|妻子|老婆|老公|丈夫|男朋友|女朋友|儿子|女儿|"
            r"孩子|爸爸?|妈妈?|父母|父亲|母亲|"
            r"哥哥?|姐姐?|弟弟?|妹妹?|猫|狗|生日|电话|手机号?|邮箱|地址|时区|预算|财年|网名|尺码|血型|星座|"
            r"母语|身高|体重|学历|专业|籍贯|国籍|车牌|"
            r"航司|座位|截止(?:日期|时间)?|工号|办公室|客户)(?:号|名|们)?(?:就|现在|一般|今年|都|也|"
            r"每[天周月年])*(?:是|叫|为|在|对|有|不|住|做|上|喜欢|爱|"
            r":|[\d一二三四五六七八九十])",
            r"我(?:的)?(?:时区|母语|血型|生日|星座|身高|体重)[^,;。]{0,4}[\dA-Za-z东西一-十]",
        ),
    ),
    (
        "habit",
        rule(
            rf"^(?!(?:this|that|it|these|those|you|he|she|they)\b)[\w' -]{{3,50}} (?:always )?makes? me "
            rf"(?:feel )?(?:very |so |really |too )?{_FEELS}\b",
            r"(?:^|[,;] )(?!(?:the|these|those|results|things|sales|numbers|figures|scores|they|we|you)\b)"
            r"(?:[a-z-]+ ){0,2}[a-z]+s (?:are|work|suit me) (?:much |far |always |simply )?(?:better|easier|"
            r"nicer|"
            r"clearer|best)(?: for me)?[.!]*$",
            r"^(?!(?:read|view|for|this|that|the|today|yes|no|not|if|these|"
            r"those)\b)(?:[a-z-]+ ){1,2}[a-z]+s only"
            r"(?:,? (?:please|thanks|because|as|i|since)\b|[.!;]|,)",
            rf"^(?!这|那|你|它|他|她|今天)[^,;。]{{1,16}}(?:看得|听得|坐得|闻得|让|使|搞得|弄得|会让|"
            rf"令)我(?:很|会|太|就|特别|有点|容易|"
            rf"觉得)*{_FEELS_ZH}",
            r"^[^,;。我你他她它这那哪谁]{1,6}(?:只要|只选|只坐|只喝|只吃|只用|只看|只买|只住|只订)"
            r"(?!你|我|他|是|有|能|不|一|在|要|会|了|说|到|够|还)(?!.*就)[^,;。?]{1,12}(?:[,;。]|$)",
            r"\b(?:i|we) (?:find|consider|think) (?!(?:this|that|it|these|those)\b)[^,;]{2,60}? (?:(?:much|"
            r"far|a lot|way|so much) )?(?:easier|better|"
            r"harder|nicer|clearer|more \w+|less \w+|too \w+|annoying|tedious|confusing|boring|unreadable|"
            r"delicious|disgusting|exhausting)\b",
            r"^(?!(?:this|that|it|these|those)\b)[\w' -]{2,40} (?:isn't|is not|aren't|are not|is|"
            r"are) (?:really |just |so |totally )?(?:my (?:thing|cup of tea|"
            r"favou?rite|style|taste)|for me|to my taste)\b",
            r"(?<!这个)(?<!那个)比[^,;。]{1,16}(?:好|容易|方便|清楚|直观|顺手)(?:用|读|看|吃|喝|听|懂|"
            r"记)?(?:多了|得多|很多)",
            r"能[^,;]{1,16},?(?:我)?(?:就|都)?(?:尽量)?不[^,;。]{1,12}[。!]*$",
            r"我(?:不太行|[吃用看听喝住穿坐](?:不惯|不来|不了)|不感冒|无感|提不起兴趣|敬谢不敏)",
            r"\bi(?:'m| am)(?: really| not| just| more of)* an? (?:big |huge )?(?:fan of|[\w-]+ (?:person|"
            r"lover|type))\b(?! (?:this|that|it)\b)",
            r"(?:^|[,;] ?|\b(?:and|but|so) )(?:when(?:ever)? (?:i|we) [^,]{1,40},? )?(?:i|we) (?:always|"
            r"never|usually|normally|typically|generally|mostly|only|"
            r"rarely|hardly ever|tend to|try to avoid|avoid)(?: (?:only|just))? (?!(?:knew|thought|saw|"
            r"heard|got|had|said|asked|seen|been|did|"
            r"forget|mind|understood|know|wanted|noticed|expected|remember|see|get|find)\b)[a-z]+",
            r"(?:when(?:ever)? (?:i|we) [^,]{2,40}|\b(?:on|for|in) [\w ]{2,20}),? (?:i|we)(?:'d|"
            r" would)? (?:like|love|want|need|take|choose|pick|go for|have|use) "
            r"(?!(?:this|that|it|to know|to see|these|you)\b)(?:an?|the|my|to|it when|some|window|aisle)\b",
            r"\b(?:i|we)(?:'d| would) (?:much )?(?:rather|sooner) (?!(?:this|that|it)\b)\w+",
            r"\b(?:i|we) (?:care (?:most|a lot|more) about|can't (?:stand|bear)|detest|loathe|adore|avoid|"
            r"go for|opt for|swear by|am used to)"
            r"(?! (?:this|that|it|these|those|you)\b) \w",
            r"\b(?:easier|better|hard|harder|difficult|impossible|uncomfortable|best) (?:for me )?to read\b|"
            r"\bworks? (?:much |far |a lot )?better for me\b",
            r"(?:比起|相比|与其)[^,;]{1,20},?(?:我|还是)?(?:更|宁|比较)(?:愿意|喜欢|想|倾向|看重|在意|希望)",
            r"我(?:个人|自己|还是|更|也|都|一直|其实|平时)*(?:最爱|最(?:喜欢|讨厌|怕|在意|看重|常)|钟爱|"
            r"偏爱|热爱|酷爱|更愿意|宁愿|宁可|倾向|看重|在意)(?!这|那|"
            r"你|的是(?:这|那)|它)",
            r"我(?:一般|通常|平时|平常|经常|总是|向来|从来|基本上?|大多|每[天周月次年]|只|几乎)(?:都|只|会|"
            r"是|不|要|在|不会|都会|都是|从不)*"
            r"(?:选|挑|坐|走|买|订|点|用|吃|喝|看|听|读|穿|住|去|睡|起床|跑|写|做|练|带|开|骑|加|放|先|早|"
            r"晚|健身|上班|下班|上午|下午|早上|晚上|周|"
            r"星期)(?!了)",
            r"(?:看着|用着|听着|吃着|读着|看起来|读起来|用起来)(?:就|会|很|太|特别|比较|有点|我)*(?:难受|"
            r"不舒服|累|费劲|吃力|头疼|头晕|舒服|顺眼|习惯|别扭)",
            r"(?:对我来说|我觉得)[^,;。]{1,20}(?:比较|更|最)(?:好用|顺手|舒服|适合|方便|清楚|直观)",
        ),
    ),
)
"""What stays true of the user; the first rule that fires is the reason given."""

IMPERATIVE = re.compile(
    r"(?:please |now |then |and |just )*(?:turn|put|book|draft|translate|rewrite|rephrase|help|send|open|"
    r"delete|remove|rename|move|"
    r"undo|redo|read|look|explain|suggest|give|tell|try|set|plan|prepare|cancel|order|buy|convert|pick|"
    r"choose|print|"
    r"save|copy|paste|merge|split|sort|start|stop|continue|imagine|describe|review|proofread|reply|respond|"
    r"call|find|get)\b",
    re.IGNORECASE,
)
"""A task for now: what it mentions is not told for its own sake."""

PASSING = rule(
    r"\b(?:right now|at the moment|just now|for now|a (?:minute|moment|second)|hang on|one sec|today|"
    r"tonight|this (?:morning|"
    r"afternoon|evening|time)|haha\w*|lol|btw thanks)\b",
    r"(?:刚才|刚刚|正在|稍等|等一下|一会儿?|马上|今天|今晚|今早|现在正|这会儿|暂时|哈哈)",
)
"""It speaks of this moment, so it says nothing lasting."""

# --- what was decided, what is put right -------------------------------------------------------------

DECISION = rule(
    r"[,;] ?(?:and |so )?(?:that's|it's|that is|this is) (?:now )?(?:settled|decided|final|agreed|fixed|"
    r"official)[.!]*$",
    r"^(?!我|你|他|她|这|那)[^,;。?]{2,12}(?:定在|定于|定为|选在|改在)[^,;。?吗]{1,16}(?=[,;。!]|$)",
    r"[,;](?:就)?(?:不(?:再)?(?:改|变)了|(?:就)?这么定了|说定了|已经?定了|不换了)[。!]*$",
    r"(?:董事会|委员会|管理层|领导|老板|客户|总部|法务|财务|股东|公司|部门)(?:们|已经?|最终|正式|今天|昨天|"
    r"上周|一致)*(?:批准|通过|同意|否决|驳回|拍板)(?:了)?\S",
    r"(?:我们?|团队|公司|全员|部门)?[^,;。]{0,10}从[^,;。]{1,20}(?:换到|换成|切到|切换到|迁到|迁移到|改到|"
    r"改用|改成|转到|转用)[^,;。]{1,20}[。!]*$",
    r"\b(?:we|i|the (?:team|board|group|committee|company|client)|management)(?:'ve| have| has)?(?: all|"
    r" both| finally| now| just| already| "
    r"eventually| jointly| unanimously| also)* (?:decided|agreed|settled|chose|chosen|opted|voted|resolved|"
    r"committed|signed off|picked|"
    r"concluded|approved|rejected)\b(?! to (?:disagree|wait|meet|talk|go home|have lunch))",
    r"\b(?:we|i)(?:'re| are|'m| am) (?:going with|sticking with|switching (?:to|from)|moving (?:to|from|"
    r"away)|dropping|migrating|standardi[sz]ing on|"
    r"replacing|adopting|phasing out)\b(?! (?:this|that|it|the (?:first|second|third|last|other))\b)",
    r"^(?:final(?:ly)?|decision|decided|agreed|resolved|it(?:'s| is) (?:decided|settled|final|official)|"
    r"conclusion|settled|the decision is)(?: then)?[,:]? ?(?:that )?\S",
    r"\b(?:it (?:was|has been) (?:decided|agreed)|the (?:final )?decision (?:is|was)|(?:is|"
    r"are) now (?:final|official))\b",
    r"(?<!没)(?<!未)(?:我们?|咱们|团队|大家|公司|董事会|客户|领导|最后|最终|会上|双方|讨论后|"
    r"商量后)(?:这边|几个|已经|已|最后|最终|一致|刚刚?|都|一起|经过?讨论|商量|"
    r"开会|后来|今天|"
    r"昨天|上周|,)*(?:决定(?!不了|权|性|因素)|定了|定下|定好|敲定|拍板|选定|确定(?:用|采用|了|以|为|在|"
    r"下来)|同意(?:了)?\S|通过了|商定|说好|约定|达成)",
    r"^(?:决定|结论|定论|最终方案|最终决定)(?:是|为|:|了,?)\S",
    r"(?:改用|弃用|换成|迁移到|停用)[^,;。?]{2,30}了[。!]*$",
)
"""Something was settled, and who said so was there."""

CORRECTION = re.compile(
    r"^(?:(?:(?:no|nope|sorry|wait|well|oh|wrong|actually|hmm?|i mean|oops|ah)[,.!;:]? *)*+(?:(?:that(?:'s|"
    r" is| was)(?: all)? (?:wrong|incorrect|not (?:right|"
    r"correct|true|quite right|it)|outdated|no longer (?:true|right))|not quite(?: right)?|you(?:'re|"
    r" are) (?:wrong|mistaken)|"
    r"(?:a |small |one )?correction|to correct (?:you|that|this|myself)|i (?:made a mistake|misspoke|"
    r"was wrong)|let me correct (?:that|this|myself)|"
    r"scratch that)[^,.;:]{0,20}[,.;: ]+)|^(?:no|nope|actually|wrong|sorry)[,:;.!] *)(?P<rest>.+)"
    r"|^(?:不对|不是的?|错了|你(?:说|记|搞|弄)错了|更正(?:一下)?|纠正(?:一下)?|订正|说错了|我(?:刚才|"
    r"之前)?说错了|其实|准确(?:地|来)说|有误|搞错了|不正确|"
    r"记错了)[^,;:。!]{0,6}"
    r"[,;:。! ]+(?P<rest_zh>.+)",
    re.IGNORECASE,
)
"""What announces that something has to be put right, and the right thing."""

STATES_SOMETHING = rule(
    r"^(?!(?:this|that|it|these|those|he|she|they|you|there|i (?:meant|mean|think|guess|want|need|thought|"
    r"see|was|did)|the (?:first|second|third|other|last|one|"
    r"next|previous)|let|please|don't|do|use|show|try|what|which|how|why|when|where|who|not|just|only)\b)"
    r"(?:(?:my|our|the|we|i|all|each|every|an?|in|by|for|as of|since)\b|(?-i:[A-Z]))[^?]{3,120}?\b(?:is|are|"
    r"was|were|has|have|starts?|begins?|ends?|"
    r"runs?|live|works?|means?|costs?|takes?|uses?|moved|changed|comes?|goes|gets?|belongs?|includes?|"
    r"should|must|will)\b",
    r"^(?!这|那|它|他|她|你|我(?:是说|说的?是|的意思|指的|想|要|觉得|们?看)|第|上面|下面|不是|应该是第|"
    r"是)[^?,]{1,30}?(?:是|在|有|从|叫|住|为|等于|"
    r"改(?:成|为|到)|变成|换成|属于|需要|不再|已经|改了|变了|推迟|提前|换了)\S",
)
"""A whole statement, which names what it is about: not "the second one"."""

HOUSE_RULE = re.compile(
    r"^(?:我们?|咱们?|大家|这里)(?:平时|一般|内部)?(?:说|讲|所说|所指|提到|口中|"
    r"叫)的(?P<rest_said>[^,;。是]{1,20}(?:就)?是\S.+)|"
    r"^(?:(?:for|with) us|(?:in|at|within|across) (?:our|my) (?:company|team|department|office|"
    r"organi[sz]ation|school|lab|clinic|shop|store|"
    r"warehouse|family|house|firm|group|business|project|data|system|database|reports?|country|industry|"
    r"line of work)|"
    r"(?:over |around )?here(?= we\b)|on our (?:team|side)|our (?:rule|policy|convention|standard|"
    r"practice) is)(?:,| that)? ?(?P<rest>\S.+)"
    r"|^(?:在)?(?:我们?|咱们?)(?:公司|部门|团队|组|学校|单位|这里|这边|这儿|家|店|医院|实验室|行业|项目|"
    r"系统|库)(?:里面?|内部|上|中)?(?:规定|的规矩是|"
    r"的惯例是)?,? ?(?P<rest_zh>\S.+)",
    re.IGNORECASE,
)
"""What holds where the user is."""

# --- what is taken back --------------------------------------------------------------------------------

_WHAT = r"(?P<what>[^,;.!?]{2,120}?)"
_ANY_MORE = r"(?:any ?more|any longer|now|these days)"
_WHAT_ZH = r"(?P<what>[^,;。!?]{2,60}?)"
_NOW = (
    r"(?:^|please |\bjust |\band |[,;] ?|^(?:let's|let us|you (?:can|may|should|must|could|have to|"
    r"need to)(?: now)?|"
    r"i(?:'d like| would like| want| need|'m asking) you to|it's (?:ok|okay|fine) to) )"
)
_RETRACTED = tuple(
    lazily(pattern)
    for pattern in (
        r"^(?:ok,? |and |also,? )?(?:you|there's|there is) (?:no longer (?:need|have) to|(?:don't|"
        r"do not) (?:need|have) to|needn't|no (?:longer )?need to) "
        + _WHAT
        + r" (?:any ?more|any longer)[.! ]*$",
        r"^you (?:no longer (?:need|have) to|can stop) " + _WHAT + r"[.! ]*$",
        r"^(?:你|以后|现在)?(?:不用|不需要|不必|无需)(?:你)?再" + _WHAT + r"了[吧。!]*$",
        _NOW + r"(?:forget|disregard|ignore|scrap|scratch|discard|"
        r"cancel|drop|delete|remove|erase|unlearn|revoke)"
        r"(?: about)? (?:that (?:i|we) (?:ever )?(?:said|told you|mentioned)(?: that)? |what (?:i|"
        r"we) (?:said|told you|mentioned|asked)(?: you)? (?:about|on|regarding|concerning) |"
        r"(?:my|our|the|that) (?:\w+ )?(?:wish|rule|preference|memory|memories|statement|(?:thing|bit|"
        r"part)(?= about))s? "
        r"(?:about|on|regarding|that|for|to|of|concerning) )" + _WHAT + r"[.! ]*$",
        _NOW + r"forget (?:that (?=(?:i|i'm|i've|my|we|we're|our|"
        r"the user)\b|\S+ \S+ \S)|about (?!it\b|this\b|that\b|them\b)|(?=my |our ))" + _WHAT + r"[.! ]*$",
        r"^(?:the |my |our |that )?(?:thing|part|bit|note|rule|wish|preference|statement|fact|"
        r"definition)s? (?:about|on|with|that|of|for|regarding) "
        + _WHAT
        + r",? (?:does(?:n't| not)|do(?:n't| not)|is(?:n't| not)|are(?:n't| not)|"
        r"no longer) (?:longer )?(?:hold|holds|apply|applies|count|counts|matter|matters|stand|stands|true|"
        r"valid|relevant|the case|needed|correct|current|up to date)\b.*$",
        r"^(?:what (?:i|we) (?:said|told you) about |my |our |the )"
        + _WHAT
        + r" (?:(?:does(?:n't| not)|do(?:n't| not)) (?:hold|apply|count|matter|"
        r"stand)(?: true)?(?: " + _ANY_MORE + r")?"
        r"|(?:no longer) (?:holds?|appl(?:y|ies)|counts?|matters?|stands?)|(?:is|are) (?:no longer|"
        r"not) (?:true|valid|relevant|the case|needed|in force)"
        r"(?: " + _ANY_MORE + r")?|can be forgotten|(?:is|are) (?:void|obsolete|off the table))[.! ]*$",
        r"^(?:it(?:'s| is)|that(?:'s| is)) (?:no longer|not) (?:true|the case|right|"
        r"valid)(?: " + _ANY_MORE + r")? that " + _WHAT + r"(?: " + _ANY_MORE + r")?[.! ]*$",
        r"^(?:please )?(?:take back|i take back|never ?mind) (?:what i said about|my (?:wish|rule|"
        r"preference) (?:for|about|on|to)) " + _WHAT + r"[.! ]*$",
        r"(?:^|请|麻烦你?|你可以|[,;] ?)(?:把)?(?:忘(?:掉|了|记)|别(?:再)?记(?:着|得)|不要再?记(?:着|得)|"
        r"不用再?记(?:着|得)?|删(?:掉|除)|去掉|"
        r"取消|撤[回销]|收回|作废|清除)"
        r"(?!告诉|说|带|密码|问|做|发|这个|那个|它|吧)(?:我?(?:之前|以前|刚才|上次|先前)?(?:说(?:过)?的?|"
        r"提(?:到|过)?的?|要求的?|讲(?:过)?的?|"
        r"告诉你的?|关于)|关于)?,?"
        + _WHAT
        + r"(?:的?(?:这件事|这回事|那件事|这一?点|这条|这句话?|事情?|记忆|记录|要求|规定|规则|说法|偏好|"
        r"约定|话))[吧了。!]*$",
        r"(?:^|请)(?:忘(?:掉|了|记)|别再记着|不用再记着?)(?!告诉|说|带|密码|问|做|发|这个|那个|它|吧|"
        r"了$)(?=我(?!的?密码|"
        r"刚才))" + _WHAT + r"[吧了。!]*$",
        r"^(?:请)?把(?:我)?(?:之前|以前|刚才|上次)?(?:说(?:过)?的?|提(?:到|过)?的?|关于|要求的?)?"
        + _WHAT
        + r"(?:这件事|这一?点|这条|"
        r"的?(?:记忆|记录|要求|规则|偏好))?(?:忘(?:掉|了|记)|删(?:掉|除|了)|取消|作废|去掉)[吧了。!]*$",
        r"^(?:我|咱们?|我们)?(?:之前|以前|刚才|上次|先前|原来|早先|过去)(?:跟你)?(?:说(?:过)?|提(?:到|过)?|"
        r"讲(?:过)?|定|要求|告诉你)的?(?:关于)?"
        + _WHAT
        + r",?(?:的?(?:事|规则|要求|说法|偏好|规定|约定|那[条个]))?,?(?:现在|已经|以后|就|都|也|"
        r",)*(?:不(?:再)?(?:作数|算数?|算了|成立|有效|适用|需要|"
        r"用|要|对)|作废|取消|失效|过时|无效|可以忘)[了吧]?[。!]*$",
        r"^"
        + _WHAT
        + r"的?(?:这(?:条|个|一条|件事|一点)|那(?:条|个|一条|件事|一?点))(?:规则|要求|偏好|约定|规定|定义)?,?"
        r"(?:现在|已经|以后|就|都|也|"
        r",)*(?:不(?:再)?(?:作数|算数?|成立|有效|适用|需要)|作废|取消|失效)了?[。!]*$",
    )
)
_MEANINGLESS = re.compile(
    r"^(?:it|this|that|them|these|those|everything|all(?: of (?:it|this|that))?|me|him|her|(?:the |my |"
    r"your )?(?:last|previous|first|second|third|next|current) .*|"
    r"这个?|那个?|它|刚才的?|上[面一次]?的?|前面的?|第.*|所有.*|全部.*|一切)$",
    re.IGNORECASE,
)
_AT_HAND = re.compile(
    r"^(?:the |my |our )?(?:password|keys?|file|chart|plot|table|column|row|line|order|meeting|appointment|"
    r"subscription|reservation|flight|booking|filter|job|task|query|change|step)s?$",
    re.IGNORECASE,
)
"""A thing that is dealt with now, unless what was said about it is meant."""
_SAID_ABOUT = re.compile(
    r"\b(?:about|regarding|concerning|(?:wish|rule|preference)(?:e?s)? (?:for|on|of|to)) $|说(?:过)?的$",
    re.IGNORECASE,
)


UNDER_CONDITION = rule(
    r"\b(?:if|when(?:ever)?|unless|once|in case|as (?:soon|long) as|(?:every|each|any|next) ?time|before|"
    r"after|until|till|suppos(?:e|ing)|assuming|provided|should (?:i|you|we)|were i|later)\b",
    r"如果|要是|假如|假设|倘若|万一|一旦|只要|除非|的话|(?:时|的时候|之后|以后|以前|之前)[,，]|每次|每当|"
    r"[若等当](?=我|你|他|她|到|用户)|下次|到时",
)
"""What stands beside it is asked for some other time, if at all."""
UPON_ASKING = rule(
    r"\b(?:if|when(?:ever)?|once|as soon as|unless|until) (?:i|you|we|he|she|they|someone) (?:ever )?"
    r"(?:say|ask|tell|request|type|write|want)s?(?: (?:so|it|that|you|me|to|for it))*$"
)
_NOT_TO = re.compile(
    r"(?:\b(?:not|never|cannot|without|dont)\b|n't\b)[^,;.]*$|(?:别|不要|不能|不可以?|不许|勿|莫|"
    r"甭)[^,;。]*$",
    re.IGNORECASE,
)
"""Before "forget" it asks for the opposite."""


_BIDS = re.compile(r"(?:让|叫|要|请)我们?$")
"""He bids me forget it."""
_NO_MORE = (
    (
        lazily(r"^(?P<who>[^,;.]{2,40}?) (?:is|are) no longer (?P<own>(?:my|our) [\w -]{2,30})"),
        r"\g<own> is \g<who>",
    ),
    (
        lazily(r"^(?P<who>[^,;。我]{1,10}?)(?:已经?)?不再是(?P<own>我们?的?[^,;。]{1,8}?)了?(?=[。!]|$)"),
        r"\g<own>是\g<who>",
    ),
    (lazily(r"\bno longer "), ""),
    (lazily(r"\b(?:do|does)(?:n't| not) (?P<what>[^,;.]{2,80}?) (?:any ?more|any longer)\b"), r"\g<what>"),
    (lazily(r"(?:n't| not)\b(?P<what>[^,;.]{2,80}?) (?:any ?more|any longer)\b"), r"\g<what>"),
    (lazily(r"不再"), ""),
    (lazily(r"(?:已经?|现在|如今)不(?!是不)(?P<what>[^,;。]{2,40}?)了(?=[,;。!]|$)"), r"\g<what>"),
)


def speaks_of_forgetting(said: str) -> bool:
    """Whether something is to be forgotten or not, which is nothing to be remembered in these words.

    That somebody forgets things is told like anything else.
    """
    match = _FORGETTING.search(said)
    before = said[: match.start()] if match else ""
    return match is not None and not (_WHO_FORGETS.search(before) and not _BIDS.search(before))


def affirmed(hidden: str) -> str:
    """What is said to hold no more, as if it did: "I live in Rome" of "I no longer live in Rome"; else ""."""
    for pattern, put in _NO_MORE:
        found, count = pattern.subn(put, hidden, count=1)
        if count:
            return found
    return ""


_FORGETTING = re.compile(r"\bforget(?:ting)? (?:that|about|my|our|what (?:i|we)) ", re.IGNORECASE)
_WHO_FORGETS = re.compile(
    r"\b(?:i|we|he|she|they|people|users?|customers?|everyone)(?:'\w+)? (?:[\w']+ ){0,2}$", re.IGNORECASE
)


def retracted(hidden: str) -> tuple[int, int] | None:
    """Where in a sentence stands what the user takes back; None when nothing named is."""
    for pattern in _RETRACTED:
        match = pattern.search(hidden)
        if match is None or _NOT_TO.search(hidden[: match.start()]):
            continue
        what, start = match["what"].strip(), match.start("what")
        is_at_hand = _AT_HAND.match(what) and not _SAID_ABOUT.search(hidden[:start])
        if not _MEANINGLESS.match(what) and not is_at_hand:
            return match.span("what")
    return None
