"""Names, what serves them, in which order, and the list of models."""

import random
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from sidecar.errors import ModelNotFound, PolicyError
from sidecar.policy.check import check, human
from sidecar.policy.load import parse
from sidecar.policy.snapshot import Snapshot
from sidecar.upstream.resilience import Plan, ResilienceConfig
from sidecar.upstream.routing import Candidate, Params, Route, Routes, in_order, listed_models
from sidecar.upstream.targets import Provider, ProviderConfig, Target

ONE, TWO = Provider("one", "http://one"), Provider("two", "http://two")
PROVIDERS = "version: 1\nproviders: {one: {base_url: 'http://one'}, two: {base_url: 'http://two'}}\n"


def loaded(text: str) -> Snapshot:
    return parse([("p.yaml", (PROVIDERS + text).encode())], {}, None)


def routes(text: str) -> Routes:
    snapshot = loaded(text)
    return Routes(snapshot.providers, snapshot.models, snapshot.candidates)


def names(route: Route) -> list[str]:
    return [candidate.name for candidate in route.candidates]


# --- names ---


def test_a_name_leads_to_all_its_targets_in_order():
    found = routes("models: {smart: [one/a, two/b]}").route("smart")
    assert names(found) == ["one/a", "two/b"]
    assert [one.name for one in found.ordered(random.random)] == ["one/a", "two/b"]


def test_a_glob_keeps_the_name_that_was_asked_for():
    made = routes("models: {'gpt-*': ['one/*', two/spare], 'gpt-5': two/x, 'one/ft-*': 'one/*'}")
    assert names(made.route("gpt-4o")) == ["one/gpt-4o", "two/spare"]
    assert made.resolve("gpt-4o") == Target(made.providers["one"], "gpt-4o")
    assert names(made.route("gpt-5")) == ["two/x"]
    assert names(made.route("one/ft-1")) == ["one/ft-1"]
    assert names(made.route("two/any")) == ["two/any"]
    with pytest.raises(ModelNotFound, match="Did you mean gpt-5"):
        made.route("got-5")


def test_the_first_glob_that_fits_counts():
    made = routes("models: {'gpt-5*': one/a, 'gpt-*': two/b}")
    assert names(made.route("gpt-5-mini")) == ["one/a"]
    assert names(made.route("gpt-4")) == ["two/b"]


def test_without_models_every_name_goes_to_the_default():
    made = routes("")
    assert names(made.route("x")) == ["one/x"]
    assert names(made.route("two/x")) == ["two/x"]
    assert names(Routes({"one": ONE}, {}).route("two/x")) == ["one/two/x"]


def test_a_target_says_what_is_particular_to_it():
    text = """
models:
  m:
    - {target: one/a, weight: 3, context_window: 8000, max_tokens: 100}
    - {target: two/b, priority: 2, params: {drop: [seed], rename: {max_tokens: max_completion_tokens}, set: {top_k: 1}}}
    - one/c
  single: {target: one/d, max_tokens: 5}
"""
    a, b, c = routes(text).route("m").candidates
    assert (a.weight, a.priority, a.context_window, a.max_tokens) == (3.0, 1, 8000, 100)
    assert b.params == Params(("seed",), {"max_tokens": "max_completion_tokens"}, {"top_k": 1})
    assert (b.priority, c.priority, c.weight) == (2, 1, 1.0)
    assert routes(text).route("single").candidates[0].max_tokens == 5


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("models: {m: {target: one}}", "models.m.target", "expected `provider/model`"),
        ("models: {m: [{target: three/x}]}", "models.m[0].target", "there is no provider `three`"),
        ("models: {m: {target: three/x}}", "models.m.target", "there is no provider `three`"),
        ("models: {m: 'one/gpt-*'}", "models.m", "expected `provider/model`, or `provider/*`"),
        ("models: {m: [{target: one/x, wieght: 1}]}", "models.m[0].wieght", "weight"),
        ("models: {m: [{target: one/x, weight: -1}]}", "models.m[0].weight", "expected"),
        ("models: {m: [{target: one/x, params: {drop: seed}}]}", "models.m[0].params.drop", "expected a list"),
        ("models: {m: [{weight: 1}]}", "models.m[0].target", "missing"),
        ("resilience: {retry: {retry_on: sometimes}}", "resilience.retry.retry_on", "expected a status"),
        ("resilience: {retry: {retry_on: [429, 200]}}", "resilience.retry.retry_on[1]", "expected a status"),
        ("resilience: {retry: {retry_on: [quota]}}", "resilience.retry", "the same target would say the same again"),
        ("resilience: {retry: {max_attempts: 0}}", "resilience.retry.max_attempts", "expected"),
        ("resilience: {retry: {max: 0s}}", "resilience.retry.max", "expected"),
        ("resilience: {fallback: {pace: none}}", "resilience.fallback.pace", "expected a duration"),
        ("resilience: {errors: {x: often}}", "resilience.errors.x", "expected one of"),
    ],
)
def test_faults_have_their_place(text: str, where: str, message: str):
    with pytest.raises(PolicyError) as error:
        loaded(text)
    (fault,) = error.value.faults
    assert fault.where == where
    assert message in f"{fault.message} {fault.hint}"
    assert fault.line == 3


# --- order ---


def shared(**weights: float) -> Route:
    return Route("m", tuple(Candidate.of(Target(ONE, name), weight=weight) for name, weight in weights.items()))


def first_of(route: Route, session: str | None, chance: random.Random) -> str:
    return route.ordered(chance.random, session)[0].target.model


def test_weights_share_the_traffic():
    chance, route = random.Random(1), shared(a=3.0, b=1.0, c=0.0)
    counts = Counter(first_of(route, None, chance) for _ in range(8000))
    assert counts["c"] == 0
    assert counts["a"] / 8000 == pytest.approx(0.75, abs=0.02)


def test_sessions_share_the_traffic_and_each_stays_where_it_is():
    chance, route = random.Random(1), shared(a=3.0, b=1.0)
    counts = Counter(first_of(route, f"session-{number}", chance) for number in range(8000))
    assert counts["a"] / 8000 == pytest.approx(0.75, abs=0.02)
    assert {first_of(route, "one", chance) for _ in range(50)} == {first_of(route, "one", chance)}


def test_a_target_that_goes_away_moves_its_own_sessions_only():
    chance, all_three, two = random.Random(1), shared(a=1.0, b=1.0, c=1.0), shared(a=1.0, b=1.0)
    for number in range(500):
        before = first_of(all_three, f"s{number}", chance)
        assert before == "c" or first_of(two, f"s{number}", chance) == before


def test_priorities_come_before_weights():
    candidates = [Candidate.of(Target(ONE, "late"), weight=1000.0, priority=2), Candidate.of(Target(ONE, "early"))]
    route = Route("m", tuple(candidates))
    assert {first_of(route, None, random.Random(seed)) for seed in range(50)} == {"early"}


def test_keys_are_used_in_turn():
    three = Provider("one", "http://one", "k0", more_keys=("k1", "k2"))
    (candidate,) = in_order([Target(three, "m")])
    route, chance = Route("m", (candidate,)), random.Random(1)
    assert [target.provider.api_key for target in candidate.targets] == ["k0", "k1", "k2"]
    assert all(target.provider.name == "one" and not target.provider.more_keys for target in candidate.targets)
    orders = Counter(route.keys(candidate, chance.random) for _ in range(3000))
    assert set(orders) == {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    assert min(orders.values()) > 800
    assert len({route.keys(candidate, chance.random, "session") for _ in range(50)}) == 1


def test_several_keys_stay_secret():
    config = ProviderConfig(base_url="http://u", api_keys=("sk-canary-1", "sk-canary-2"))
    provider = Provider.of("p", config)
    assert (provider.api_key, provider.more_keys) == ("sk-canary-1", ("sk-canary-2",))
    assert "canary" not in f"{config!r} {provider!r} {Candidate.of(Target(provider, 'm'))!r}"
    with pytest.raises(ValidationError, match="not both"):
        ProviderConfig(base_url="http://u", api_key="a", api_keys=("b",))


def test_a_check_shows_no_key_of_several(tmp_path):
    file = tmp_path / "p.yaml"
    text = "version: 1\nproviders:\n  p:\n    base_url: http://u\n    api_keys: [%s]\n"
    file.write_text(text % "sk-canary-1, 'sk canary 2'")
    told = human(check(file, {}))
    assert "providers.p.api_keys[1]" in told
    assert "canary" not in told
    file.write_text(text % "sk-canary-1, sk-canary-2")
    assert "with 2 keys of its own" in human(check(file, {}))


# --- what a target gets ---


def test_a_request_changes_for_its_target():
    params = Params(("seed", "user"), {"max_tokens": "max_completion_tokens", "stop": "n"}, {"top_k": 1})
    candidate = Candidate.of(Target(ONE, "m"), max_tokens=50, params=params)
    asked = {"model": "m", "seed": 1, "max_tokens": 100, "n": 2, "stop": "x", "messages": []}
    before = dict(asked)
    assert list(candidate.adapt(asked).items()) == [
        ("model", "m"),
        ("max_completion_tokens", 50),
        ("n", 2),
        ("stop", "x"),
        ("messages", []),
        ("top_k", 1),
    ]
    assert asked == before


@pytest.mark.parametrize("value", [10, 50, None, True, "100"])
def test_what_may_stay_is_the_same_document(value: Any):
    asked = {"max_tokens": value}
    assert Candidate.of(Target(ONE, "m"), max_tokens=50).adapt(asked) is asked


# --- the bound ---


@pytest.mark.parametrize(
    ("section", "bound"),
    [
        ("{}", 1),
        ("{retry: {}}", 3),
        ("{fallback: {pace: off}}", 2),
        ("{fallback: {}}", 4),
        ("{retry: {max_attempts: 5}, fallback: {}}", 10),
    ],
)
def test_the_bound_is_one_number(section: str, bound: int, tmp_path):
    text = f"{PROVIDERS}models: {{m: [one/a, two/b]}}\nresilience: {section}\n"
    snapshot = parse([("p.yaml", text.encode())], {}, None)
    assert snapshot.plan.bound(snapshot.candidates["m"]) == bound
    file = tmp_path / "p.yaml"
    file.write_text(text)
    assert (f"attempts   at most {bound} for one call" in human(check(file, {}))) is (section != "{}")


def test_keys_add_to_the_bound():
    several = Candidate.of(Target(Provider("p", "http://p", "a", more_keys=("b", "c")), "m"))
    assert Plan(ResilienceConfig()).bound([several]) == 1
    assert Plan(loaded("resilience: {retry: {}}").policy.resilience).bound([several]) == 5


def test_a_policy_with_resilience_is_not_inert():
    only = "version: 1\nproviders: {one: {base_url: 'http://one'}}\n"
    assert parse([("p", only.encode())], {}, None).inert
    assert not parse([("p", f"{only}resilience: {{retry: {{}}}}\n".encode())], {}, None).inert


def test_variables_stand_over_the_section():
    environ = {"SIDECAR_RESILIENCE_RETRY_MAX_ATTEMPTS": "5", "SIDECAR_RESILIENCE_FALLBACK_PACE": "off"}
    snapshot = parse([("p.yaml", PROVIDERS.encode())], environ, None)
    assert (snapshot.plan.max_attempts, snapshot.plan.pace) == (5, 0.0)


# --- GET /v1/models ---


def listing(*ids: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 5, "owned_by": "x"} for name in ids]}


def ids(document: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in document["data"]]


def test_the_list_has_the_policys_names_and_every_target_that_can_be_asked_for():
    made = routes("models: {smart: [one/a, two/b], 'gpt-*': 'one/*'}")
    found = listed_models(made, {"one": listing("a", "gpt-5"), "two": listing("b", "gpt-5")}, created=7)
    assert ids(found) == ["smart", "gpt-5", "one/a", "one/gpt-5", "two/b", "two/gpt-5"]
    assert all(made.serves(name) for name in ids(found))
    assert found["data"][0] == {"id": "smart", "object": "model", "created": 5, "owned_by": "x"}


def test_the_list_without_models():
    made = Routes({"one": ONE, "two": TWO}, {})
    assert ids(listed_models(made, {"one": listing("a"), "two": listing("b")})) == ["a", "one/a", "two/b"]
    assert ids(listed_models(Routes({"one": ONE}, {}), {"one": listing("a", "b", "a")})) == ["a", "b"]


def test_the_list_holds_only_what_the_caller_may_use():
    made = routes("models: {smart: one/a, fast: two/b}")
    found = listed_models(made, {"one": listing("a")}, may=lambda name: name in ("fast", "one/a"), created=7)
    assert ids(found) == ["fast", "one/a"]
    assert found["data"][0] == {"id": "fast", "object": "model", "created": 7, "owned_by": "sidecar"}


@pytest.mark.parametrize("answer", [None, [], {}, {"data": None}, {"data": [1, {}, {"id": 3}, {"id": ""}]}, "text"])
def test_a_provider_that_answers_something_else_counts_as_empty(answer: Any):
    assert ids(listed_models(routes("models: {smart: one/a}"), {"one": answer})) == ["smart"]
