"""A slot means "may call a model or a tool now". A run that waits for its children gives its slot back."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """Counts slots. Claims look at `free`; a run that goes on after a wait comes before new claims."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._used = 0
        self._returning: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """How many new runs may start now: none while somebody who gave a slot back wants it again."""
        return max(0, self.count - self._used - len(self._returning))

    def take(self) -> None:
        """Take a slot for a run that was just claimed; `free` was looked at before."""
        self._used += 1

    def give_back(self) -> None:
        self._used -= 1
        while self._returning and self._used < self.count:
            waiter = self._returning.popleft()
            if not waiter.done():
                self._used += 1
                waiter.set_result(None)

    @property
    def full(self) -> bool:
        return self._used >= self.count

    async def take_again(self) -> None:
        """Wait for a slot, in the order of asking. Counted as taken afterwards even when the wait is cancelled."""
        if not self.full:
            self._used += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._returning.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():  # never granted: `give_back` may have thrown it out of the line already
                if waiter in self._returning:
                    self._returning.remove(waiter)
                self._used += 1
            raise

    def reclaim(self) -> None:
        """Count a slot as taken again without waiting: its run is being stopped and will give it back at once."""
        self._used += 1
