"""Sorting streamed pieces into calls."""

import pytest

from core.models.calls import CallCollector
from core.models.fragments import CallFragment

A, B = '{"path":"a.md"}', '{"path":"b.md"}'
PATH, A_END, B_END = '{"path":', '"a.md"}', '"b.md"}'


def piece(index, call_id, name, arguments=""):
    return CallFragment(index=index, id=call_id, name=name, arguments=arguments)


R = "read_file"
FORMS = {
    "A interleaved": [
        piece(0, "call_a", R), piece(1, "call_b", R), piece(0, None, None, PATH), piece(1, None, None, PATH),
        piece(0, None, None, A_END), piece(1, None, None, B_END),
    ],
    "B same index, new ids": [piece(0, "call_a", R, A), piece(0, "call_b", R, B)],
    "B interleaved": [
        piece(0, "call_a", R), piece(0, "call_b", R), piece(0, "call_a", None, PATH), piece(0, "call_b", None, PATH),
        piece(0, "call_a", None, A_END), piece(0, "call_b", None, B_END),
    ],
    "C no index, ids on all": [
        piece(None, "call_a", R), piece(None, "call_b", R), piece(None, "call_a", None, PATH),
        piece(None, "call_b", None, PATH), piece(None, "call_a", None, A_END), piece(None, "call_b", None, B_END),
    ],
    "C no index, id at the start": [
        piece(None, "call_a", R, PATH), piece(None, None, None, A_END),
        piece(None, "call_b", R, PATH), piece(None, None, None, B_END),
    ],
    "D id only in the last delta": [
        piece(0, None, R, PATH), piece(0, "call_a", None, A_END),
        piece(1, None, R, PATH), piece(1, "call_b", None, B_END),
    ],
    "D without index": [
        piece(None, None, R, PATH), piece(None, "call_a", None, A_END),
        piece(None, None, R, PATH), piece(None, "call_b", None, B_END),
    ],
    "E name in every delta": [
        piece(0, "call_a", R), piece(0, "call_a", R, PATH), piece(0, "call_a", R, A_END),
        piece(1, "call_b", R, PATH), piece(1, "call_b", R, B_END),
    ],
    "E without index": [
        piece(None, "call_a", R, PATH), piece(None, "call_a", R, A_END),
        piece(None, "call_b", R, PATH), piece(None, "call_b", R, B_END),
    ],
    "G empty ids": [piece(0, "", R, A), piece(1, "", R, B)],
    "G empty ids, same index": [piece(0, "", R, A), piece(0, "", R, B)],
    "G no index and no id": [piece(None, None, R, A), piece(None, None, R, B)],
    "same id twice": [piece(0, "call_a", R, A), piece(1, "call_a", R, B)],
    "same id twice, no index": [piece(None, "call_a", R, A), piece(None, "call_a", R, B)],
    "the whole call once more": [piece(0, "call_a", R, A), piece(0, "call_a", R, A), piece(1, "call_b", R, B)],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_two_calls_are_told_apart_whatever_the_provider_sends(form):
    """C31 A to G, and their neighbours."""
    collector = CallCollector()
    positions = [position for part in FORMS[form] if (position := collector.add(part)) is not None]
    first, second = collector.calls()
    assert positions == [0, 1]
    assert (first.name, first.arguments, first.fault) == (R, A, None)
    assert (second.name, second.arguments, second.fault) == (R, B, None)
    assert first.id
    assert second.id
    assert first.id != second.id


def test_usable_ids_are_kept_and_others_replaced():
    collector = CallCollector(taken=frozenset({"used"}))
    for index, call_id in enumerate(["toolu_01", "used", "has space", "x" * 200]):
        collector.add(piece(index, call_id, R, A))
    ids = [call.id for call in collector.calls()]
    assert ids[0] == "toolu_01"
    assert all(call_id.startswith("call-") for call_id in ids[1:])
    assert len(set(ids)) == 4


def test_another_name_at_the_same_index_is_another_call():
    collector = CallCollector()
    for part in [piece(0, None, "list_files"), piece(0, None, R, A)]:
        collector.add(part)
    assert [(found.name, found.arguments) for found in collector.calls()] == [("list_files", "{}"), (R, A)]


def test_inseparable_pieces_give_a_fault_and_never_vanish():
    """C31: no call is run, none disappears without a word."""
    collector = CallCollector()
    for part in [piece(None, None, R), piece(None, None, R), piece(None, None, None, A), piece(None, None, None, B)]:
        collector.add(part)
    (found,) = collector.calls()
    assert found.arguments == "{}"
    assert "Extra data" in found.fault


@pytest.mark.parametrize(("name", "stored"), [("", "unnamed"), ("read file!", "read_file_"), ("n" * 80, "n" * 64)])
def test_a_name_that_providers_would_refuse_is_replaced_and_faulty(name, stored):
    collector = CallCollector()
    collector.add(piece(0, "c1", name, "{}"))
    (found,) = collector.calls()
    assert found.name == stored
    assert "no tool name" in found.fault
