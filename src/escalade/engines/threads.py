"""The engine of threads, for work that waits or that releases Python's global interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from escalade.engines.base import EngineOptions, Factory, Feed, Work, close_work, ignore_note, keep_waiting
from escalade.engines.dispatch import max_items_per_worker
from escalade.engines.feed import JobDropped, ListFeed
from escalade.errors import InputError

if TYPE_CHECKING:
    from escalade.engines.results import Results


def start(factory: Factory, options: EngineOptions) -> ThreadEngine:
    """Start the engine ``threads``.

    Raises:
        InputError: a step timeout is set; a thread cannot be ended from outside.
    """
    if options.step_timeout is not None:
        raise InputError(
            "`step_timeout` needs worker processes (threads cannot be killed): use `engine=local`"
        )
    return ThreadEngine(factory, options.workers)


class ThreadEngine:
    """Runs items on ``workers`` threads, each with its own work made by ``factory``."""

    def __init__(self, factory: Factory, workers: int) -> None:
        self.on_note: Callable[[str], None] = ignore_note
        self.on_wait: Callable[[], None] = keep_waiting
        self._works: list[Work] = []
        try:
            for _ in range(workers):
                self._works.append(factory())
        except BaseException:
            self._close_works()
            raise
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="escalade")

    @property
    def info(self) -> dict[str, Any]:
        return self._works[0].info()

    def run(self, job: Any, items: int) -> Results:
        even = max(1, -(-items // len(self._works)))
        feed = ListFeed(items, self.on_wait, max_items_per_worker(even, self.info))
        shares = [self._pool.submit(_serve, work, job, feed) for work in self._works]
        try:
            wait(shares, return_when=FIRST_EXCEPTION)
        finally:  # after a failure or Ctrl-C, running items end before their next step, as they may never end
            feed.stop()
            wait(shares)
        for share in shares:
            share.result()
        return feed.results

    def close(self) -> None:
        self._pool.shutdown()
        self._close_works()

    def _close_works(self) -> None:
        for work in self._works:
            close_work(work)


def _serve(work: Work, job: Any, feed: Feed) -> None:
    work.begin(job)
    with suppress(JobDropped):
        work.run(feed)
