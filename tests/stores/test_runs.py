"""What is remembered of runs and sessions: bounded, apart, and not counted twice."""

from sidecar.stores import runs as module
from sidecar.stores.runs import MAX_NAMES, MAX_RECENT, Ran, Runs


def test_the_one_unused_for_the_longest_is_forgotten() -> None:
    runs = Runs(runs=2)
    for name in "ab":
        runs.run(("acme", name)).add([("1", name)])
    runs.run(("acme", "a"))
    runs.run(("acme", "c"))
    assert runs.run(("acme", "a")).names == {"a"}
    assert runs.run(("acme", "b")).names == set()
    assert len(runs) == 2


def test_pins_are_bounded_and_apart() -> None:
    runs = Runs(sessions=2)
    runs.pins(("acme", "s")).pin("read", b"1")
    assert runs.pins(("acme", "s")).get("read") == b"1"
    assert runs.pins(("beta", "s")).get("read") is None
    runs.pins(("acme", "t"))
    assert runs.pins(("acme", "s")).get("read") is None


def test_many_small_ones_or_a_few_large_ones() -> None:
    """However much each remembers, all together stay in their bound, which is exact through all ways to forget."""
    runs = Runs(most_bytes=20_000)
    for number in range(100):
        ran = runs.run(("acme", str(number)))
        ran.begin(number)
        ran.add((f"{number}-{at}", "x" * 50) for at in range(60))
        ran.begin(number)
        ran.add([("", "again")])
        runs.pins(("acme", str(number))).pin("tool" * 50, b"1")
    late = runs.run(("acme", "99"))
    assert late.names == {"x" * 50, "again"}
    assert 10 < len(runs) < 150
    for memory in (runs._runs, runs._pins):
        held = sum(one.size for one in memory._known.values())
        assert held == memory._load.size < 21_000


def test_what_is_forgotten_weighs_nothing_any_more() -> None:
    runs = Runs(runs=1)
    gone = runs.run(("acme", "a"))
    runs.run(("acme", "b"))
    gone.add([("1", "x" * 200)])
    assert runs._runs._load.size == runs.run(("acme", "b")).size


def test_a_history_is_believed_where_it_holds_the_newest_call() -> None:
    ran = Ran()
    ran.add([("1", "a"), ("2", "b")])
    assert ran.in_order([("1", "a"), ("2", "b"), ("3", "c")]) == [("1", "a"), ("2", "b"), ("3", "c")]
    assert ran.in_order([]) == [("1", "a"), ("2", "b")]
    assert ran.in_order([("9", "z")]) == [("1", "a"), ("2", "b")]


def test_calls_without_ids_go_by_their_number() -> None:
    ran = Ran()
    ran.add([("", "a"), ("", "b")])
    assert ran.in_order([("", "c"), ("", "a"), ("", "b")]) == [("", "c"), ("", "a"), ("", "b")]
    assert ran.in_order([("", "b")]) == [("", "a"), ("", "b")]


def test_calls_whose_ids_are_by_place_go_by_their_number() -> None:
    ran = Ran()
    ran.add([("call_0", "a"), ("call_0", "b")])
    assert ran.in_order([("call_0", "b")]) == [("call_0", "a"), ("call_0", "b")]
    assert ran.in_order([("call_0", "a"), ("call_1", "b")]) == [("call_0", "a"), ("call_1", "b")]


def test_the_same_turn_again_takes_back_what_it_had_called() -> None:
    ran = Ran()
    ran.begin(1)
    ran.add([("1", "a")])
    ran.begin(2)
    ran.add([("2", "b"), ("3", "c")])
    ran.begin(2)
    assert [*ran.recent] == [("1", "a")]
    assert ran.names == {"a", "b", "c"}


def test_more_than_is_remembered_is_known_to_be_more() -> None:
    ran = Ran()
    ran.add(("", f"t{number}") for number in range(MAX_NAMES))
    assert len(ran.recent) == MAX_RECENT
    assert ran.overflowed is False
    ran.add([("", "one more")])
    assert ran.overflowed is True
    long = Ran()
    long.add([("", "x" * (module.MAX_NAME + 1))])
    assert long.overflowed
