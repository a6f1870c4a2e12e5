"""Multipart forms, cut into parts and put together again."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx2
import openai
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from python_multipart import FormParser
from python_multipart.multipart import Field as TheirField
from python_multipart.multipart import File as TheirFile

from sidecar.errors import InvalidRequest, PayloadTooLarge
from sidecar.wire.multipart import (
    PEEK,
    Closing,
    Field,
    FileBegins,
    FileData,
    FileEnds,
    FileText,
    Form,
    PartBegins,
    PartData,
    PartEnds,
    Parts,
    Piece,
    Told,
    boundary_of,
    encoded,
)
from tests.wire.fuzz import examples

B = b"x-y"


@dataclass(frozen=True)
class Part:
    name: str
    filename: str | None
    data: bytes
    more: tuple[bytes, ...] = ()

    def written(self) -> bytes:
        line = f'Content-Disposition: form-data; name="{self.name}"'
        line += "" if self.filename is None else f'; filename="{self.filename}"'
        return b"\r\n".join((line.encode(), *self.more, b"", self.data))


def body(*parts: Part, padding: bytes = b"", end: bytes = b"\r\n") -> bytes:
    told = b"".join(b"--" + B + padding + b"\r\n" + part.written() + b"\r\n" for part in parts)
    return told + b"--" + B + b"--" + end


def pieces(data: bytes, sizes: Sequence[int] = (1 << 20,)) -> list[Piece]:
    parts, found, place, turn = Parts(B), list[Piece](), 0, 0
    while place < len(data):
        found += parts.feed(data[place : place + sizes[turn % len(sizes)]])
        place, turn = place + sizes[turn % len(sizes)], turn + 1
    parts.finish()
    return found


def told(data: bytes, sizes: Sequence[int] = (1 << 20,), form: Form | None = None) -> list[Told]:
    form, found, place, turn = form or Form(B), list[Told](), 0, 0
    while place < len(data):
        found += form.feed(data[place : place + sizes[turn % len(sizes)]])
        place, turn = place + sizes[turn % len(sizes)], turn + 1
    form.finish()
    return found


# Data that comes as near to a boundary as data may: no line of it begins with one.
near = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"-", b"--", b"x", b"--x-", B, b"a--x-y", b"\0", b"\xff", "é".encode()])
)
data = near.map(b"".join).filter(lambda raw: all(mark + b"--" + B not in b"\r\n" + raw for mark in (b"\r", b"\n")))
names = st.text("ab[]é ", max_size=4)
parts = st.builds(
    Part,
    names,
    st.none() | st.text("ab.é %", max_size=4),
    data,
    st.lists(st.sampled_from([b"Content-Type: text/plain; charset=utf-8", b"X-Y:z"]), unique=True).map(tuple),
)
forms = st.lists(parts, max_size=4)
sizes = st.lists(st.integers(1, 30), min_size=1, max_size=5)
paddings = st.sampled_from([b"", b" ", b" \t "])
ends = st.sampled_from([b"", b"\r\n", b"\r\n\r\n", b" \n"])


# --- the law


@examples(300)
@given(forms, sizes, paddings, ends)
def test_however_it_is_cut_the_pieces_are_the_body(
    form: list[Part], sizes: list[int], padding: bytes, end: bytes
) -> None:
    raw = body(*form, padding=padding, end=end)
    found = pieces(raw, sizes)
    assert b"".join(piece.raw for piece in found) == raw
    assert b"".join(piece.raw for piece in told(raw, sizes)) == raw
    begun = [piece for piece in found if isinstance(piece, PartBegins)]
    assert [(piece.name, piece.filename) for piece in begun] == [(part.name, part.filename) for part in form]
    assert datas(found) == [part.data for part in form]


def datas(found: Sequence[Piece]) -> list[bytes]:
    got: list[bytes] = []
    for piece in found:
        match piece:
            case PartBegins():
                got.append(b"")
            case PartData(raw):
                got[-1] += raw
    return got


@examples(300)
@given(forms, sizes, st.data())
def test_an_edit_changes_its_part_alone(form: list[Part], sizes: list[int], draw: st.DataObject) -> None:
    assume(form)
    at = draw.draw(st.integers(0, len(form) - 1))
    text = draw.draw(st.text("ab é", max_size=5))
    assume(form[at].filename is None or is_text(form[at].data))
    got, number = b"", -1
    for one in told(body(*form), sizes):
        number += isinstance(one, Field | FileBegins)
        if number != at or isinstance(one, Closing):
            got += one.raw
        elif isinstance(one, Field):
            got += one.with_text(text)
        elif isinstance(one, FileBegins):
            got += one.raw + encoded(text)
    changed = [*form[:at], Part(form[at].name, form[at].filename, text.encode(), form[at].more), *form[at + 1 :]]
    assert got == body(*changed)


def is_text(raw: bytes) -> bool:
    try:
        return "\0" not in raw.decode()
    except UnicodeDecodeError:
        return False


@examples(200)
@given(forms, sizes)
def test_texts_are_the_same_however_it_is_cut(form: list[Part], sizes: list[int]) -> None:
    def texts(found: Sequence[Told]) -> list[str | bytes]:
        got: list[str | bytes] = []
        for one in found:
            match one:
                case Field():
                    got.append(one.text)
                case FileBegins():
                    got.append("" if one.is_text else b"")
                case FileText(text):
                    got[-1] += text  # type: ignore[operator]
                case FileData(raw):
                    got[-1] += raw  # type: ignore[operator]
        return got

    expected = [
        part.data.decode("utf-8", "surrogateescape") if part.filename is None or is_text(part.data) else part.data
        for part in form
    ]
    assert texts(told(body(*form), sizes)) == expected


@examples(200)
@given(forms)
def test_another_reader_finds_the_same_parts(form: list[Part]) -> None:
    theirs: list[tuple[bytes, bytes]] = []

    def on_field(field: TheirField) -> None:
        theirs.append((field.field_name or b"", field.value or b""))

    def on_file(file: TheirFile) -> None:
        file.file_object.seek(0)
        theirs.append((file.field_name or b"", file.file_object.read()))

    parser = FormParser("multipart/form-data", on_field, on_file, boundary=B)
    parser.write(body(*form))
    parser.finalize()
    assert sorted(theirs) == sorted((part.name.encode(), part.data) for part in form)


# --- texts and files


def test_fields_are_whole_and_files_come_in_pieces() -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(20_000)
    lines = ("é one line\n" * 2000).encode()
    got = told(body(Part("model", None, b"m"), Part("image", "a.txt", png), Part("file", "b.bin", lines)), [4096])
    assert isinstance(got[0], Field)
    assert (got[0].text, got[0].begins.name) == ("m", "model")
    files = [one for one in got if isinstance(one, FileBegins)]
    assert [(file.begins.filename, file.is_text) for file in files] == [("a.txt", False), ("b.bin", True)]
    assert b"".join(one.raw for one in got if isinstance(one, FileData)) == png
    read = [one.text for one in got if isinstance(one, FileText)]
    assert "".join(read).encode() == lines
    assert len(read) > 2
    assert [type(one) for one in got[-3:]] == [FileEnds, Closing, Closing]


def test_what_a_file_begins_with_tells_what_it_is() -> None:
    late = b"a" * (PEEK - 1) + "é".encode() + b"\xff\0"
    for raw, expected in ((b"", True), (b"\xc3", False), (b"a\0", False), (late, True), (b"\xef\xbb\xbfa", True)):
        [begins] = [one for one in told(body(Part("f", "f", raw)), [100]) if isinstance(one, FileBegins)]
        assert begins.is_text is expected, raw[:9]
    assert b"".join(one.raw for one in told(body(Part("f", "f", late)), [7])) == body(Part("f", "f", late))


def test_a_file_leaves_before_its_end_has_come() -> None:
    parts, sent = Parts(B), 0
    parts.feed(body(Part("f", "f", b"")).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
    for _ in range(100):
        sent += sum(len(piece.raw) for piece in parts.feed(b"z" * 1000))
    assert sent > 100_000 - 10


def test_a_field_is_bounded_and_a_file_is_not() -> None:
    with pytest.raises(PayloadTooLarge, match="larger than 10 bytes; send it as a file"):
        told(body(Part("secret-name", None, b"z" * 11)), form=Form(B, max_field=10))
    assert told(body(Part("f", "f", b"z" * 11)), form=Form(B, max_field=10))


def test_an_edited_part_is_not_counted_wrong() -> None:
    part = Part("prompt", None, b"secret", (b"Content-Length: 6", b"X-A: 1"))
    [field, _] = told(body(part, end=b""))
    assert isinstance(field, Field)
    assert field.with_text("#") == b"--" + B + b"\r\n" + Part("prompt", None, b"#", (b"X-A: 1",)).written()


def test_a_file_is_renamed_in_both_spellings() -> None:
    raw = (
        b'--x-y\r\nX-A: filename="a.txt"\r\nContent-Disposition: form-data; name="f"; filename="a.txt"; '
        b"filename*=utf-8''a.txt\r\n\r\n\r\n--x-y--"
    )
    begins = pieces(raw)[0]
    assert isinstance(begins, PartBegins)
    assert begins.filename == "a.txt"
    renamed = begins.renamed('é "#\\')
    assert renamed.startswith(b'--x-y\r\nX-A: filename="a.txt"\r\n')
    assert "filename=\"é %22#_\"; filename*=UTF-8''%C3%A9%20%22%23%5C\r\n\r\n".encode() in renamed


@pytest.mark.parametrize(
    ("written", "filename"),
    [
        (b'form-data; name="f"; filename="a\\"b.txt"', 'a"b.txt'),
        (b"form-data;name=f;filename=a.txt;", "a.txt"),
        (b"Form-Data; Name=f; FileName*=UTF-8''%e2%82%ac.txt", "€.txt"),
        ('form-data; name="f"; filename="é"'.encode(), "é"),
        (b'form-data; name="f"; filename=""', ""),
        (b'form-data; name="f"', None),
    ],
)
def test_names_are_read_as_they_are_written(written: bytes, filename: str | None) -> None:
    begins = pieces(b"--x-y\r\ncontent-disposition: " + written + b"\r\n\r\n\r\n--x-y--")[0]
    assert isinstance(begins, PartBegins)
    assert (begins.name, begins.filename) == ("f", filename)


# --- what is refused

HEAD = b'--x-y\r\nContent-Disposition: form-data; name="secret-name"\r\n'
CLOSE = b"\r\n--x-y--\r\n"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "ends before its closing boundary"),
        (HEAD + b"\r\nabc", "ends before its closing boundary"),
        (HEAD + b"\r\nabc\r\n--x-y-", "ends before its closing boundary"),
        (b"hello\r\n" + HEAD + b"\r\n" + CLOSE, "does not begin with its boundary"),
        (b"\n" + HEAD + b"\r\n" + CLOSE, "does not begin with its boundary"),
        (HEAD + b"\r\n" + CLOSE + b"hello", "text after its closing boundary"),
        (HEAD + b"\r\n" + CLOSE + HEAD + b"\r\n" + CLOSE, "text after its closing boundary"),
        (HEAD + b"\r\na\n--x-y\r\n" + CLOSE, "without a line end of its own"),
        (HEAD + b"\r\na\r--x-y\r\n" + CLOSE, "without a line end of its own"),
        (HEAD + b"\r\n--x-y--\r\n", "without a line end of its own"),
        (HEAD + b"\r\n\n--x-y--\r\n", "without a line end of its own"),
        (HEAD + b"\r\na\r\n--x-yz\r\n" + CLOSE, "text after a boundary"),
        (HEAD + b"\r\na\r\n--x-y\n" + CLOSE, "text after a boundary"),
        (HEAD + b"\r\na\r\n--x-y" + b" " * 200 + CLOSE, "text after a boundary"),
        (b"--x-y\r\n\r\na" + CLOSE, "without a name"),
        (b"--x-y\r\nContent-Disposition: attachment; name=a\r\n\r\na" + CLOSE, "without a name"),
        (b"--x-y\r\nContent-Disposition: form-data\r\n\r\na" + CLOSE, "without a name"),
        (HEAD + b"Content-Disposition: form-data; name=b\r\n\r\na" + CLOSE, "the same header twice"),
        (HEAD + b" folded\r\n\r\na" + CLOSE, "malformed header line"),
        (HEAD + b"X-A: a\nX-B: b\r\n\r\na" + CLOSE, "malformed header line"),
        (HEAD + b"X-A" + b"\r\n\r\na" + CLOSE, "malformed header line"),
        (HEAD + b"Content-Transfer-Encoding: base64\r\n\r\na" + CLOSE, "content-transfer-encoding"),
        (HEAD + b"Content-Type: text/plain; charset=utf-16\r\n\r\na" + CLOSE, "another charset"),
        (HEAD + b"X-A: " + b"a" * 20_000 + b"\r\n\r\na" + CLOSE, "header of more than 16,384 bytes"),
        (HEAD + b"X-A: " + b"a" * 20_000, "header of more than 16,384 bytes"),
        (b'--x-y\r\nContent-Disposition: form-data; name="a"; name="b"\r\n\r\na' + CLOSE, "read in two ways"),
        (b"--x-y\r\nContent-Disposition: form-data; name=\"a\"; name*=utf-8''b\r\n\r\na" + CLOSE, "read in two ways"),
        (b'--x-y\r\nContent-Disposition: form-data; name="a" b\r\n\r\na' + CLOSE, "malformed parameters"),
        (
            b"--x-y\r\nContent-Disposition: form-data; name=f; filename=a; filename*=utf-8''b\r\n\r\n" + CLOSE,
            "a file with two names",
        ),
        (
            b"--x-y\r\nContent-Disposition: form-data; name=f; filename*=latin1''b\r\n\r\n" + CLOSE,
            "name is not in UTF-8",
        ),
        ((HEAD + b"\r\na\r\n") * 1001 + b"--x-y--", "too many parts"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(raw: bytes, why: str) -> None:
    for size in (1 << 20, 7):
        with pytest.raises(InvalidRequest, match=why) as caught:
            told(raw, [size])
        assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        (b"multipart/form-data; boundary=x-y", b"x-y"),
        (b'Multipart/Form-Data; charset=utf-8; Boundary="a b:c"', b"a b:c"),
        (
            b"multipart/form-data;boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
            b"----WebKitFormBoundary7MA4YWxkTrZu0gW",
        ),
    ],
)
def test_the_boundary_is_read(content_type: bytes, boundary: bytes) -> None:
    assert boundary_of(content_type) == boundary


@pytest.mark.parametrize(
    "content_type",
    [
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b"multipart/form-data; boundary=a; boundary=b",
        b'multipart/form-data; boundary="a\tb"',
        b"multipart/form-data; boundary=" + b"a" * 201,
        "multipart/form-data; boundary=é".encode(),
        b"multipart/mixed; boundary=a",
        b"application/json",
        b"",
    ],
)
def test_a_boundary_that_is_none_is_refused(content_type: bytes) -> None:
    with pytest.raises(InvalidRequest):
        boundary_of(content_type)


# --- real clients


def sent_by(ask: Callable[[openai.OpenAI], object]) -> tuple[bytes, bytes]:
    """The content type and the body that the official client sends."""
    caught: list[tuple[bytes, bytes]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        caught.append((request.headers["content-type"].encode(), request.read()))
        return httpx2.Response(200, json={"text": "t", "created": 1, "id": "f", "object": "file"})

    with openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=httpx2.MockTransport(answer))) as client:
        ask(client)
    return caught[0]


def test_the_official_clients_forms_are_read() -> None:
    jsonl = json.dumps({"messages": []}).encode() + b"\n"

    def upload(client: openai.OpenAI) -> object:
        return client.files.create(file=("é.jsonl", jsonl, "application/jsonl"), purpose="batch")

    def transcribe(client: openai.OpenAI) -> object:
        return client.audio.transcriptions.create(file=b"\xff\xfb\0", model="m", prompt="a\r\n--b", keywords=["é", "f"])

    for ask, fields, files in (
        (upload, {"purpose": ["batch"]}, [("é.jsonl", True)]),
        (transcribe, {"model": ["m"], "prompt": ["a\r\n--b"], "keywords[]": ["é", "f"]}, [("upload", False)]),
    ):
        content_type, raw = sent_by(ask)
        got = told(raw, [11], Form(boundary_of(content_type)))
        read: dict[str, list[str]] = {}
        for one in got:
            if isinstance(one, Field):
                read.setdefault(one.begins.name, []).append(one.text)
        assert read == fields
        assert [(one.begins.filename, one.is_text) for one in got if isinstance(one, FileBegins)] == files
        assert b"".join(one.raw for one in got) == raw


def test_a_line_end_may_come_first() -> None:
    raw = b"\r\n" + body(Part("a", None, b"b"))
    for size in (1, 100):
        assert b"".join(piece.raw for piece in pieces(raw, [size])) == raw


def test_a_part_ends_where_it_ends() -> None:
    assert [type(piece) for piece in pieces(body(Part("a", None, b""), Part("b", None, b"c")))] == [
        *(PartBegins, PartEnds),
        *(PartBegins, PartData, PartEnds),
        *(Closing, Closing),
    ]
