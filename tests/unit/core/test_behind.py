from __future__ import annotations

import threading

import pytest

from drivelab.core.behind import Behind


def test_calls_are_done_one_by_one_in_order_beside_the_caller() -> None:
    may_end, alone, done = threading.Event(), threading.Lock(), list[int]()

    def slow(number: int) -> None:
        assert alone.acquire(blocking=False)
        assert may_end.wait(60)
        done.append(number)
        alone.release()

    with Behind() as behind:
        behind.do(slow, 0)
        assert not done  # the caller continues
        may_end.set()
        for number in range(1, 5):
            behind.do(slow, number)
    assert done == [0, 1, 2, 3, 4]


def _fail(number: int) -> None:
    raise ValueError(number)


def test_the_next_call_raises_an_error_and_is_not_done() -> None:
    done: list[int] = []
    behind = Behind()
    with behind:
        behind.do(_fail, 0)
        with pytest.raises(ValueError, match="0"):
            behind.do(done.append, 1)
    assert not done


def test_the_end_raises_an_error() -> None:
    with pytest.raises(ValueError, match="0"), Behind() as behind:
        behind.do(_fail, 0)


def test_an_error_of_the_caller_comes_first() -> None:
    def caller() -> None:
        with Behind() as behind:
            behind.do(_fail, 0)
            raise KeyError

    with pytest.raises(KeyError):
        caller()
