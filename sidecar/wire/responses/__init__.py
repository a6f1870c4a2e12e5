"""`/v1/responses`: where its texts live, and how to write events of its streams.

Also what is stored of them: `GET /v1/responses/{id}`, buffered or streamed, and lists of a response's input items.
"""

from ...core.surface import Surface
from .events import ask_usage as ask_usage
from .events import choices_in as choices_in
from .events import ended as ended
from .events import error_text as error_text
from .events import event_of as event_of
from .events import hosted as hosted
from .events import is_error as is_error
from .events import plain as plain
from .events import reply_texts as reply_texts
from .events import spoil as spoil
from .events import usage as usage
from .places import OPAQUE as OPAQUE
from .places import REPLY_SURFACES as REPLY_SURFACES
from .places import REQUEST_SURFACES as REQUEST_SURFACES
from .places import UNKNOWN as UNKNOWN
from .request import but_tools as but_tools
from .request import request_slots as request_slots
from .writing import answer as answer
from .writing import answer_frames as answer_frames
from .writing import error_body as error_body
from .writing import error_frames as error_frames
from .writing import writer as writer

NAME = "responses"
# A stream ends with its last event.
DONE = b""
# No name comes in pieces.
NAMES = frozenset[Surface]()
COPIES = True
