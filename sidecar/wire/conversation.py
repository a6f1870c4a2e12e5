"""The second view of a document: messages, tool calls and their results, tools, and the form of the reply.

Rules about text see slots and lanes; stages that think in messages see this. Each API that has conversations offers
the same view, so that a stage is written once for all of them. An edit through a view lands in the one document.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from .stream import Document, Frame

Ending = Literal["stop", "length", "calls", "filtered", "other"]
"""How a reply came to its end. `length`: it was cut there. `calls`: the model waits for tools."""


class Tool(NamedTuple):
    """A tool that the client runs. `parameters` is the JSON Schema of its arguments, None for one without or free text.

    `definition` is all of its definition as it stands in the request.
    """

    name: str
    description: str
    parameters: Any
    definition: Any


class Choice(NamedTuple):
    """Whether the model may, must or must not call: `required` with a `name` means this tool."""

    kind: Literal["auto", "required", "none"] = "auto"
    name: str = ""


class Format(NamedTuple):
    """The form that a reply must have: JSON that fits a schema, or with None any JSON object."""

    name: str
    schema: Any
    strict: bool = True


class Called(NamedTuple):
    """A tool call. `arguments` is JSON text; or with `free` a text of any kind.

    `position` counts the calls of its message or reply from 0, `choice` is the number of the reply's choice. `hosted`:
    the provider would run it and asks whether it may; the request does not define its tool.
    """

    id: str
    name: str
    arguments: str
    free: bool = False
    position: int = 0
    choice: int = 0
    hosted: bool = False


class HostedCall(NamedTuple):
    """A call that the provider has run itself. One that it had asked about has the id of the `Called` that it was."""

    id: str
    name: str


class Result(NamedTuple):
    """What a tool gave back. `name` is that of the call it answers, empty where the request does not hold that call.

    `texts` are its text parts, each with a way to replace it.
    """

    id: str
    name: str
    texts: Sequence["Part"]


class Part(Protocol):
    """One text in a document. `core.surface.Slot` is one."""

    @property
    def text(self) -> str: ...
    def replace(self, text: str) -> None: ...


class Asked(Protocol):
    """A request. What has not the shape that the API documents counts as absent, for the provider to refuse."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools that the client runs; those that the provider runs are none of ours."""

    @property
    def approvals(self) -> bool:
        """Whether the provider may ask if it may run a call itself, which no tool here defines."""

    @property
    def choice(self) -> Choice: ...
    @property
    def streams(self) -> bool:
        """Whether the reply is to be a stream."""

    @property
    def parallel(self) -> bool:
        """Whether the model may make several calls at once."""

    @property
    def format(self) -> Format | None: ...
    @property
    def choices(self) -> int:
        """How many replies are asked for."""

    @property
    def history(self) -> Sequence[Called | HostedCall | Result]:
        """Earlier calls and their results, in order. Of calls that the provider has run only that it has."""

    @property
    def system(self) -> str:
        """All text of the system and developer, joined by blank lines."""

    def set_format(self, form: Format | None) -> None:
        """None takes the form away."""

    def instruct(self, text: str) -> None:
        """Adds to the end of the system text; where there is none it is the first."""

    def say(self, text: str) -> None:
        """Adds a text of the user at the end: to the last message if it is the user's, else as a message of its own."""

    def answer(self, reply: Document, results: Mapping[str, str]) -> None:
        """Adds the reply's turn (its first choice) and the results of its calls, by call id, at the end.

        What providers want back with a call, such as reasoning, its id and its signature, is kept.
        """


class Replied(Protocol):
    """A whole reply."""

    @property
    def texts(self) -> Mapping[int, str]:
        """What each choice says, by its number: its text parts joined; not its reasoning and refusal."""

    @property
    def calls(self) -> Sequence[Called]:
        """Calls that the client decides about, of all choices: of tools that it runs, and those that it may approve."""

    @property
    def hosted(self) -> Sequence[HostedCall]:
        """Calls that the provider has run itself before the client gets the reply."""

    def ending(self, choice: int) -> Ending: ...
    def refused(self, choice: int) -> bool:
        """Whether the model has said in the API's own way that it does not answer."""

    def say(self, choice: int, text: str) -> None:
        """Puts a text in the place of all that the choice says; what was computed over it is dropped."""

    def drop(self, calls: Iterable[Called], notice: str) -> None:
        """Takes these calls out of the reply; the notice, if any, follows what each of their choices says.

        Where none is left in a choice, its ending is that of a plain answer.
        """


class Gather(Protocol):
    """A stream becomes the reply that it tells."""

    def feed(self, document: Document) -> None: ...
    @property
    def reply(self) -> Document | None:
        """The whole reply, as the API would have sent it buffered; None while it is not complete, or an error."""


class View(Protocol):
    """What a module of `wire.views` offers, by the API's name in the table there."""

    def asked(self, document: Document) -> Asked: ...
    def replied(self, document: Document) -> Replied: ...
    def gather(self) -> Gather: ...
    def frames(self, document: Document) -> Sequence[Document]:
        """The frames of a stream that tells a whole reply; usage included. The terminator is not among them."""


def gathered(gather: Gather, frames: Iterable[Frame], read: Any) -> Document | None:
    """The reply that frames tell. `read` makes a document of a frame's payload, None where it is none."""
    for frame in frames:
        document = None if frame.data is None else read(frame.data)
        if isinstance(document, dict):
            gather.feed(document)
    return gather.reply
