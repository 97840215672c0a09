from __future__ import annotations

import asyncio

from runs.worker.deltas import Deltas


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_the_first_piece_of_every_message_goes_out_at_once():
    sent = []
    deltas = Deltas(sent.append)
    deltas.add("one", "Hel")
    await _turn()
    deltas.add("one", "lo")
    deltas.settled()
    deltas.add("two", "Wor")
    await _turn()
    assert [(d.id, d.text) for d in sent] == [("one", "Hel"), ("two", "Wor")]


async def test_the_first_piece_is_not_held_back_by_the_end_of_the_message_before():
    sent = []
    deltas = Deltas(sent.append)
    deltas.add("one", "a")
    await _turn()
    deltas.add("one", "b")
    deltas.add("two", "c")  # sends what is left of the first message
    await _turn()
    assert [(d.id, d.text) for d in sent] == [("one", "a"), ("one", "b"), ("two", "c")]


async def test_pieces_that_come_quickly_share_one_row():
    sent = []
    deltas = Deltas(sent.append)
    for piece in "abcd":
        deltas.add("one", piece)
        await _turn()
    assert [d.text for d in sent] == ["a"]
    deltas.flush()
    assert [d.text for d in sent] == ["a", "bcd"]
    assert deltas.text == "abcd"


async def test_pieces_of_a_message_that_is_stored_whole_are_not_sent_any_more():
    sent = []
    deltas = Deltas(sent.append)
    deltas.add("one", "a")
    deltas.settled()
    deltas.flush()
    await _turn()
    assert (sent, deltas.text) == ([], "")
