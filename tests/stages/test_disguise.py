"""Values that the provider never sees, and the client never misses."""

import json
import re

import pytest

from sidecar.stores.sessions import Sessions
from sidecar.text.pseudonyms import Disguise, Pseudonyms, canonical, label
from sidecar.text.standins import hashed, masked

from .talk import Call, arguments, chain, content

EMAIL = {"name": "email", "regex": r"[a-z.]{1,64}@[a-z.]{1,64}\.[a-z]{2,8}"}
CUSTOMER = {"name": "cust", "regex": r'O"Brien \\ Söhne'}
HIDE = chain([{"name": "hide", "patterns": [EMAIL, CUSTOMER], "action": "pseudonymize"}])
VALUE = 'O"Brien \\ Söhne'


def disguise(session: Pseudonyms | None = None, *, declared: bool = False) -> Disguise:
    return Disguise(session or Pseudonyms(), declared=declared)


def test_the_provider_sees_placeholders_and_the_client_its_values() -> None:
    call = Call(HIDE, disguise=disguise())
    asked = call.ask("mail ana@x.org and bo@x.org, then ana@x.org again")
    assert asked[0]["content"] == "mail <EMAIL_1> and <EMAIL_2>, then <EMAIL_1> again"
    assert call.hear({"content": "sent to <EMAIL_2>"})["content"] == "sent to bo@x.org"


@pytest.mark.parametrize("written", ["<email_1>", "EMAIL_1", "<EMAIL_1", "email_1>", r"\<EMAIL\_1\>", "<Email_1>"])
def test_a_model_may_write_it_otherwise(written: str) -> None:
    call = Call(HIDE, disguise=disguise())
    call.ask("I am ana@x.org")
    assert call.hear({"content": f"hello {written}, welcome"})["content"] == "hello ana@x.org, welcome"


def test_another_number_is_another_value() -> None:
    call = Call(HIDE, disguise=disguise())
    call.ask("I am ana@x.org")
    assert call.hear({"content": "<EMAIL_10> EMAIL_11"})["content"] == "<EMAIL_10> EMAIL_11"


@pytest.mark.parametrize("size", range(1, 12))
def test_a_placeholder_in_a_stream_may_be_cut_anywhere(size: int) -> None:
    call = Call(HIDE, disguise=disguise())
    call.ask("I am ana@x.org")
    reply = "write to <EMAIL_1>, not <EMAIL_2>; EMAIL_1"
    got = call.hear_stream([{"content": reply[at : at + size]} for at in range(0, len(reply), size)])
    assert content(got) == "write to ana@x.org, not <EMAIL_2>; ana@x.org"


@pytest.mark.parametrize("size", range(1, 12))
def test_in_tool_arguments_it_comes_back_as_json_asks(size: int) -> None:
    call = Call(HIDE, disguise=disguise())
    assert VALUE not in json.dumps(call.ask(f"invoice {VALUE}"), ensure_ascii=False)
    written = json.dumps({"customer": "<CUST_1>", "n": 1})
    whole = call.hear({"tool_calls": [{"id": "a", "function": {"name": "invoice", "arguments": written}}]})
    assert json.loads(whole["tool_calls"][0]["function"]["arguments"]) == {"customer": VALUE, "n": 1}
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    got = call.hear_stream([{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces])
    assert json.loads(arguments(got)) == {"customer": VALUE, "n": 1}


def test_a_session_keeps_its_placeholders() -> None:
    session = Pseudonyms()
    Call(HIDE, disguise=disguise(session, declared=True)).ask("remember ana@x.org")
    call = Call(HIDE, disguise=disguise(session, declared=True))
    assert call.ask("now bo@x.org", "who was first?")[0]["content"] == "now <EMAIL_2>"
    assert call.hear({"content": "first was <EMAIL_1>"})["content"] == "first was ana@x.org"


def test_a_guessed_session_gives_back_only_what_the_exchange_brought() -> None:
    session = Pseudonyms()
    Call(HIDE, disguise=disguise(session)).ask("remember ana@x.org")
    stranger = Call(HIDE, disguise=disguise(session))
    stranger.ask("print <EMAIL_1> please")
    assert stranger.hear({"content": "<EMAIL_1>"})["content"] == "<EMAIL_1>"


def test_the_clients_own_placeholder_becomes_nobodys_value() -> None:
    call = Call(HIDE, disguise=disguise())
    asked = call.ask("what is <email_1>?", "I am ana@x.org")
    assert asked[1]["content"] == "I am <EMAIL_2>"
    assert call.hear({"content": "<EMAIL_1> is <EMAIL_2>"})["content"] == "<EMAIL_1> is ana@x.org"


def test_tenants_and_sessions_never_meet() -> None:
    sessions = Sessions(lambda: 0.0)
    sessions.pseudonyms("a", "s").conceal("email", "ana@x.org", frozenset())
    assert sessions.pseudonyms("a", "s").reveal("<EMAIL_1>") == "ana@x.org"
    assert sessions.pseudonyms("b", "s").reveal("<EMAIL_1>") is None
    assert sessions.pseudonyms("a", "t").reveal("<EMAIL_1>") is None


def test_sessions_are_forgotten() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0], limit=2, idle_seconds=60)
    sessions.pseudonyms("a", "1").conceal("email", "ana@x.org", frozenset())
    now[0] = 59
    assert sessions.pseudonyms("a", "1").reveal("<EMAIL_1>") == "ana@x.org"
    now[0] = 120
    assert sessions.pseudonyms("a", "1").reveal("<EMAIL_1>") is None
    for name in ("2", "3", "4"):
        sessions.pseudonyms("a", name)
    assert len(sessions) == 2


def test_without_room_values_are_redacted_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.text.pseudonyms.MAX_VALUES", 1)
    call = Call(HIDE, disguise=disguise())
    assert call.ask("ana@x.org, bo@x.org, ana@x.org")[0]["content"] == "<EMAIL_1>, [REDACTED:email], <EMAIL_1>"


def test_another_rule_does_not_take_out_what_is_put_back() -> None:
    policy = chain(
        [
            {"name": "hide", "patterns": [EMAIL], "action": "pseudonymize"},
            {"name": "no-mail-in-replies", "patterns": [EMAIL], "on": ["reply"], "replacement": "[MAIL]"},
        ]
    )
    call = Call(policy, disguise=disguise())
    call.ask("I am ana@x.org")
    assert call.hear({"content": "<EMAIL_1>, not eve@x.org"})["content"] == "ana@x.org, not [MAIL]"


def test_names_become_labels() -> None:
    assert [label(name) for name in ("us_ssn", "e-mail", "a.b", "密")] == ["US_SSN", "E_MAIL", "A_B", "VALUE"]
    assert canonical(r"\<us\_ssn_3") == "<US_SSN_3>"


def test_mask_keeps_the_last_four() -> None:
    policy = chain([{"name": "m", "patterns": [{"name": "card", "regex": r"\d{16}"}], "action": "mask"}])
    assert Call(policy).ask("card 4111111111111234")[0]["content"] == "card ************1234"
    assert Call(policy).hear({"content": "4111111111111234"})["content"] == "************1234"
    assert masked("12345678") == "********"


def test_a_masked_value_may_be_cut_anywhere() -> None:
    policy = chain([{"name": "m", "patterns": [{"name": "key", "regex": r"sk-\w{8,}"}], "action": "mask"}])
    for size in range(1, 8):
        text = "a sk-abcdefgh1234, b"
        got = Call(policy).hear_stream([{"content": text[at : at + size]} for at in range(0, len(text), size)])
        assert content(got) == "a ***********1234, b"


def test_a_hash_is_stable_for_a_tenant_and_differs_between_them() -> None:
    rule = {"name": "h", "patterns": [EMAIL], "action": "hash"}
    policy = chain([rule], hash_key="0123456789abcdef")
    first, again, other = (
        Call(policy, tenant=tenant).ask("to ana@x.org")[0]["content"] for tenant in ("acme", "acme", "globex")
    )
    assert re.fullmatch(r"to \[HASH:email:[0-9a-f]{16}\]", first)
    assert first == again != other
    assert hashed(b"another key 16 b", "acme", "email", "ana@x.org") not in first


def test_a_remembered_text_comes_out_the_same() -> None:
    policy = chain([{"name": "r", "patterns": [EMAIL]}])
    calls = [Call(policy) for _ in range(3)]
    long = "please write to ana@x.org " * 20
    assert {call.ask(long)[0]["content"] for call in calls} == {long.replace("ana@x.org", "[REDACTED:email]")}
    assert [len(call.run.verdicts[0].findings) for call in calls] == [20, 20, 20]
