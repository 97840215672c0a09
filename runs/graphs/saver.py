"""LangGraph's checkpointer over our rows: what it writes goes through the run's fence, as everything a run writes does.

The graph works on a loop of its own; the rows belong to the host's. So each method here hands its database work over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runs.graphs import checkpoints
from runs.graphs.checkpoints import PutCheckpoint, PutWrites

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

    from runs.graphs.checkpoints import Typed
    from runs.group_commit import GroupCommit
    from runs.lifecycle import Held
    from runs.models import GraphCheckpoint

_MEMORY = InMemorySaver()  # only for the way it numbers versions


class FencedSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of one held run's thread. Writing raises Fenced once the run is somebody else's."""

    def __init__(self, database: GroupCommit, held: Held, host: asyncio.AbstractEventLoop) -> None:
        super().__init__(serde=JsonPlusSerializer(allowed_msgpack_modules=True))
        self._database = database
        self._held = held
        self._host = host

    # --- reading --------------------------------------------------------------------------------------------------
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        ns, wanted = _ns(config), get_checkpoint_id(config)
        row = await self._ask(checkpoints.find, self._held.thread_id, ns, wanted)
        return None if row is None else await self._tuple(row)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        ns = (config or {}).get("configurable", {}).get("checkpoint_ns")
        wanted = get_checkpoint_id(config) if config else None
        earlier = get_checkpoint_id(before) if before else None
        rows = await self._ask(lambda: checkpoints.listed(self._held.thread_id, ns=ns, before=earlier))
        told = 0
        for row in rows:
            if limit is not None and told >= limit:
                return
            if wanted and row.checkpoint_id != wanted:
                continue
            found = await self._tuple(row)
            if all(found.metadata.get(name) == value for name, value in (filter or {}).items()):
                told += 1
                yield found

    async def _tuple(self, row: GraphCheckpoint) -> CheckpointTuple:
        checkpoint = self._loads((row.kind, bytes(row.data)))
        versions = {channel: str(version) for channel, version in checkpoint["channel_versions"].items()}
        blobs, writes = await self._ask(
            lambda: (
                checkpoints.blobs_of(row.thread_id, row.ns, versions),
                checkpoints.writes_of(row.thread_id, row.ns, row.checkpoint_id),
            )
        )
        values = {channel: self._loads(typed) for channel, typed in blobs.items() if typed[0] != "empty"}
        writes.sort(key=lambda write: writes_sort_key(write.path, write.task_id, write.idx))
        return CheckpointTuple(
            config=_config(row, row.checkpoint_id),
            checkpoint=cast("Checkpoint", {**checkpoint, "channel_values": values}),
            metadata=self._loads((row.metadata_kind, bytes(row.metadata))),
            parent_config=_config(row, row.parent_id) if row.parent_id else None,
            pending_writes=[(one.task_id, one.channel, self._loads((one.kind, bytes(one.data)))) for one in writes],
        )

    # --- writing --------------------------------------------------------------------------------------------------
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        head: dict[str, Any] = dict(checkpoint)
        values = head.pop("channel_values")
        blobs: dict[tuple[str, str], Typed] = {
            (channel, str(version)): self.serde.dumps_typed(values[channel]) if channel in values else ("empty", b"")
            for channel, version in new_versions.items()
        }
        ns = _ns(config)
        verb = PutCheckpoint(
            held=self._held,
            ns=ns,
            checkpoint_id=checkpoint["id"],
            parent_id=get_checkpoint_id(config) or "",
            data=self.serde.dumps_typed(head),
            metadata=self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
            blobs=blobs,
        )
        await self._write(verb)
        place = {"thread_id": str(self._held.thread_id), "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}
        return {"configurable": place}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        verb = PutWrites(
            held=self._held,
            ns=_ns(config),
            checkpoint_id=get_checkpoint_id(config) or "",
            task_id=task_id,
            path=task_path,
            writes=[
                (WRITES_IDX_MAP.get(channel, place), channel, self.serde.dumps_typed(value))
                for place, (channel, value) in enumerate(writes)
            ],
        )
        await self._write(verb)

    def get_next_version(self, current: str | None, channel: None) -> str:
        return _MEMORY.get_next_version(current, channel)

    # --- the same for nodes that are no coroutines ------------------------------------------------------------------
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._wait(self.aget_tuple(config))

    def list(self, config: RunnableConfig | None, **wanted: Any) -> Iterator[CheckpointTuple]:
        async def collected() -> Any:
            return [found async for found in self.alist(config, **wanted)]

        yield from self._wait(collected())

    def put(self, config: RunnableConfig, *rest: Any) -> RunnableConfig:
        stored: RunnableConfig = self._wait(self.aput(config, *rest))
        return stored

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._wait(self.aput_writes(config, writes, task_id, task_path))

    # --- ways to the host -------------------------------------------------------------------------------------------
    def _loads(self, typed: Typed) -> Any:
        return self.serde.loads_typed(typed)

    async def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await self._over(self._database.call(function, *arguments))

    async def _write(self, verb: Any) -> None:
        async def written() -> Any:
            return await self._database.write(verb)

        await self._over(written())

    async def _over(self, work: Coroutine[Any, Any, Any]) -> Any:
        if asyncio.get_running_loop() is self._host:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._host))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._host).result()


def _ns(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_ns", ""))


def _config(row: GraphCheckpoint, checkpoint_id: str) -> RunnableConfig:
    place = {"thread_id": str(row.thread_id), "checkpoint_ns": row.ns, "checkpoint_id": checkpoint_id}
    return {"configurable": place}
