"""Things on loan: made once for equal keys, freed with the last loan, however that goes."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from blendfusion.models.services.llama.ref_counts import Loan, Pool


class Thing:
    def __init__(self, log: list[str]) -> None:
        self.log = log
        log.append("made")

    def close(self) -> None:
        self.log.append("closed")


def test_equal_keys_share_and_the_last_loan_frees() -> None:
    log: list[str] = []
    pool: Pool[Thing] = Pool()
    first, second = (pool.borrow("a", lambda: Thing(log)) for _ in range(2))
    other = pool.borrow("b", lambda: Thing(log))
    assert first.thing is second.thing is not other.thing
    first.release()
    first.release()
    assert log == ["made", "made"]
    second.release()
    assert log == ["made", "made", "closed"]
    assert len(pool) == 1
    assert pool.borrow("a", lambda: Thing(log)).thing is not second.thing


def test_one_more_loan_of_the_same_thing_keeps_it() -> None:
    log: list[str] = []
    pool: Pool[Thing] = Pool()
    first = pool.borrow("a", lambda: Thing(log))
    second = first.again()
    first.release()
    assert log == ["made"]
    second.release()
    assert log == ["made", "closed"]


def test_a_loan_that_is_dropped_gives_itself_back() -> None:
    log: list[str] = []
    pool: Pool[Thing] = Pool()
    loan: list[object] = [pool.borrow("a", lambda: Thing(log))]
    loan.append(loan)  # only the garbage collector finds it
    del loan
    gc.collect()
    assert log == ["made", "closed"]


def test_a_loan_that_is_dropped_while_the_pool_is_busy_is_settled_afterwards() -> None:
    log: list[str] = []
    pool: Pool[Thing] = Pool()
    loan = pool.borrow("a", lambda: Thing(log))
    with pool._hold_lock():
        loan.release()
        assert log == ["made"]
    assert log == ["made", "closed"]


def test_threads_that_ask_at_once_make_one() -> None:
    log: list[str] = []
    pool: Pool[Thing] = Pool()
    loans: list[Loan[Thing]] = []

    def slow() -> Thing:
        time.sleep(0.05)
        return Thing(log)

    threads = [
        threading.Thread(target=lambda: loans.append(pool.borrow("a", slow))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log == ["made"]
    while loans:
        loans.pop().release()
    assert log == ["made", "closed"]


def test_what_cannot_be_made_leaves_nothing() -> None:
    log: list[str] = []
    pool: Pool[Thing] = Pool()

    def broken() -> Thing:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pool.borrow("a", broken)
    assert len(pool) == 0
    pool.borrow("a", lambda: Thing(log)).release()
    assert log == ["made", "closed"]
