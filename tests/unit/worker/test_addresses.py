from __future__ import annotations

from astraflow.worker.addresses import Schedulers

A, B, C = "ws://a/ws/worker", "ws://b/ws/worker", "wss://c/ws/worker"


def test_all_are_tried_each_once_in_the_order_of_the_list() -> None:
    assert Schedulers([A, B, C]).in_turn() == (A, B, C)
    assert Schedulers([A]).in_turn() == (A,)
    assert not Schedulers([A]).has_several


def test_after_one_that_failed_the_next_comes_first() -> None:
    schedulers = Schedulers([A, B, C])
    schedulers.lost(A)
    assert schedulers.in_turn() == (B, C, A)
    schedulers.lost(C)
    assert schedulers.in_turn() == (A, B, C)


def test_a_lost_connection_counts_against_the_one_that_had_it() -> None:
    schedulers = Schedulers([A, B, C])
    schedulers.connected(B)
    schedulers.lost_connection()
    assert schedulers.in_turn() == (C, A, B)


def test_one_that_another_scheduler_sent_us_to_changes_no_order() -> None:
    schedulers = Schedulers([A, B])
    schedulers.connected("ws://elsewhere")
    schedulers.lost_connection()
    assert schedulers.in_turn() == (A, B)


def test_a_lane_is_looked_for_where_it_is_said_to_be_and_then_where_the_home_is() -> None:
    home = Schedulers([A, B])
    home.connected(B)
    elsewhere = Schedulers([C], home.known)
    assert elsewhere.in_turn() == (C, B, A)
    assert elsewhere.has_several
    nowhere = Schedulers((), home.known)
    assert nowhere.in_turn() == (B, A)
    home.connected(A)
    assert nowhere.in_turn() == (A, B)
    nowhere.replace([C])
    assert nowhere.in_turn() == (C, A, B)


def test_links_lead_to_the_one_that_is_connected() -> None:
    schedulers = Schedulers([A, C])
    assert schedulers.origin() == "http://a"
    schedulers.connected(C)
    assert schedulers.origin() == "https://c"
