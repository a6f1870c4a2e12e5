"""Ordinary English, the kind a model answers with: words for stream deltas and text for the hold measure."""

import re
from itertools import cycle, islice

PROSE = """\
The committee met on Tuesday to discuss the spring schedule, and most of the afternoon went to one \
question: whether the library should stay open until nine during the examination weeks. Students had asked \
for it in every survey since 2019. The staff were in favour, provided that the evening shift could be \
shared between the three branches, and provided that somebody would finally repair the heating in the \
reading room.

"We are not asking for much," said the head librarian, who has worked there for twenty-two years. "A few \
more hours, a little more light, and a coffee machine that works." She had brought figures. On an ordinary \
evening about 140 people use the building; in the last week of term it is closer to 400, and a third of \
them leave only when the doors are locked. Nobody on the committee had known how large the difference was.

There are, broadly speaking, three ways to pay for longer hours:

1. Move money from the weekend budget, which has been underspent by roughly 12% in each of the last four \
years.
2. Ask the departments for a contribution that depends on how many of their students sign in after six.
3. Train student assistants, pay them the usual rate, and keep one experienced colleague on call.

The third option is the cheapest, but it takes the longest to set up; the first could begin next month. A \
mixture is possible as well. For example, the weekend money would cover March and April, while the \
assistants are being trained, and the departments would only be asked if the numbers turn out higher than \
expected. In that case the total comes to about $18,500 for the year, which is less than the cost of the \
new carpet.

**What happens next.** The chair will write to the departments before Friday. The building manager has \
promised an estimate for the heating, and the student union offered to run another short survey, this time \
with a question about noise. If everything goes well, the first late evening will be on 4 March. It's a \
small change, yet it might be the one that people notice most: a warm, quiet, well-lit place to sit and \
read, open when they need it and close to where they live.

Not everyone is convinced. Two members pointed out that a similar trial had been abandoned in 2014, after \
only six weeks, because hardly anybody came. The minutes from that time suggest a simpler explanation: the \
side entrance was closed at seven, the sign on the main door had never been changed, and the late opening \
was announced in a newsletter which few students read. Sometimes an idea fails for reasons that have \
nothing to do with the idea. It would be a pity to draw the wrong lesson twice.
"""

PROMPT_SYSTEM = (
    "You are a careful assistant for the staff of a university library. Answer in plain English, keep to "
    "what the documents say, and say so when you do not know. Never invent figures, names or dates."
)
PROMPT_USER = (
    "Here are my notes from the last meeting. The spring schedule is still open, the heating in the reading "
    "room has to be repaired first, and the three branches want to share the evening shift. Could you write "
    "a short summary for the newsletter, in a friendly tone, about 150 words, and end it with the date of "
    "the next meeting? Please mention that the student union is running another survey."
)

# Looks like a provider key and is none; put together here so that no scanner of repositories stumbles over it.
CANARY = "sk-" + "proj-" + "Zt4Qv9Lw2Xk7Rb3Np8Hs5Jd6T3Blbk" + "FJmY1Gc8Vf4Ue7Wa2Qo9Ki5Sx3Dz6"
LEAK = f"Use this key for the trial: {CANARY} and tell nobody."

_TOKEN = re.compile(r"\s*\S+|\s+$")


def words(count: int) -> list[str]:
    """`count` deltas as a model would send them, each a word with the blank before it."""
    return list(islice(cycle(_TOKEN.findall(PROSE)), count))
