"""What a remote agent is: an async subagent on another Agent Protocol server, or a graph of this one under a name.

Header values are held as they are stored: sealed, or, from config.yaml, as the file says them with `$VAR` in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from engine.config.connections import EnvKeyPolicy, RemoteAgentConfig, env_key_policy
from engine.config.expand import expand
from engine.config.fields import (
    Description,
    Flag,
    HeaderName,
    HttpUrl,
    Label,
    Line,
    Section,
    is_header_value,
    text,
)
from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from engine.remote.client import RemoteAgent as Callee
from engine.remote.keys import MASK
from subagents import sealing
from subagents.definitions import Source, row_key
from subagents.errors import Fault, InvalidDefinition
from subagents.validation import validated

if TYPE_CHECKING:
    from datetime import datetime

_LONGEST_VALUE: Final = 8_000
_LONGEST_STORED: Final = 16_000
_NO_REMOTE: Final = _("expected an object with the fields of a remote agent")
_OTHER_ADDRESS: Final = _(
    "the value of %(name)s cannot be used with this address: it was given for another one, or with another key. "
    "Enter it again"
)
_BAD_VALUE: Final = _("the value of %(name)s may hold only printable ASCII characters, on one line, at most %(most)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAgent:
    """One remote agent. `url` None: a graph or agent of this deployment. Source of the fields: product.md §6."""

    name: str
    description: str  # read by the lead's model to choose
    graph_id: str
    display_name: str = ""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    use_env_key: EnvKeyPolicy = EnvKeyPolicy.AUTO
    webhook: str | None = None
    update_strategy: Literal["interrupt", "enqueue"] = "interrupt"
    notify_parent: bool = True
    mode: Literal["isolated", "fork"] = "isolated"
    enabled: bool = True
    version: str | None = None
    updated_at: datetime | None = None

    @property
    def title(self) -> str:
        return self.display_name or self.name

    @property
    def key(self) -> str:
        return row_key(Source.MANAGED, self.name)

    @property
    def host(self) -> str:
        """Scheme, host and port as they were written; "" for this deployment."""
        return "/".join(self.url.split("/", 3)[:3]) if self.url else ""

    @property
    def masked_headers(self) -> dict[str, str]:
        """The headers as they may be shown."""
        return {name: _mask(name, value, self.url) for name, value in self.headers.items()}


class RemoteAgentDocument(Section):
    """The fields of a remote agent but its name."""

    display_name: Label = ""
    description: Description
    graph_id: Line
    url: HttpUrl | None = None
    headers: Annotated[
        Mapping[HeaderName, Annotated[str, text(_LONGEST_STORED, may_be_empty=True)]],
        Field(default_factory=dict, repr=False),
    ]
    use_env_key: Annotated[EnvKeyPolicy, BeforeValidator(env_key_policy)] = EnvKeyPolicy.AUTO
    webhook: HttpUrl | None = None
    update_strategy: Literal["interrupt", "enqueue"] = "interrupt"
    notify_parent: Flag = True
    mode: Literal["isolated", "fork"] = "isolated"
    enabled: Flag = True


FIELDS: Final = ("name", *RemoteAgentDocument.model_fields)
_ENV_KEY: Final = {EnvKeyPolicy.AUTO: "auto", EnvKeyPolicy.ALWAYS: True, EnvKeyPolicy.NEVER: False}


def validate_remote(written: Any) -> RemoteAgent:
    """Return the remote agent that `written`, a mapping of FIELDS to plain values, describes.

    Header values that are not sealed yet come back sealed. Raises InvalidDefinition with every fault.
    """
    name, said = validated(written, RemoteAgentDocument, what=_NO_REMOTE)
    fields = {field: getattr(said, field) for field in RemoteAgentDocument.model_fields if field != "headers"}
    return RemoteAgent(name=name, headers=_sealed(said.headers, said.url), **fields)


def to_plain(agent: RemoteAgent) -> dict[str, object]:
    """Return the fields as plain JSON values, header values sealed, such that `validate_remote` gives it back."""
    fields = {field: getattr(agent, field) for field in FIELDS}
    return {**fields, "headers": dict(agent.headers), "use_env_key": _ENV_KEY[agent.use_env_key]}


def shown(document: Mapping[str, object]) -> dict[str, object]:
    """A document, which need not be a valid one, as it may be shown: header values masked."""
    headers, url = document.get("headers"), document.get("url")
    if headers is None:
        return dict(document)
    if not isinstance(headers, Mapping):
        return {**document, "headers": MASK}
    where = url if isinstance(url, str) else None
    return {**document, "headers": {str(name): _mask(str(name), value, where) for name, value in headers.items()}}


def with_kept_headers(document: Mapping[str, object], before: RemoteAgent | None) -> dict[str, object]:
    """The document with the stored value wherever a header holds the mask that was shown of it; "" clears one."""
    headers = document.get("headers")
    if before is None or not isinstance(headers, Mapping):
        return dict(document)
    stored = {name.lower(): (value, mask) for (name, mask), value in _pairs(before)}
    kept = {}
    for name, value in headers.items():
        if value == "":
            continue  # cleared
        known = stored.get(str(name).lower())
        kept[name] = known[0] if known is not None and value == known[1] else value
    return {**document, "headers": kept}


def from_config(entry: RemoteAgentConfig) -> RemoteAgent:
    fields = {field: getattr(entry, field) for field in RemoteAgentConfig.model_fields}
    return RemoteAgent(**fields)


def missing_variables(agent: RemoteAgent, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that headers of config.yaml name and that are not set."""
    return expand(_in_file(agent), environ).missing


def callee(agent: RemoteAgent, environ: Mapping[str, str]) -> Callee:
    """What the engine needs to call the agent, its headers in the clear: made at the moment of use, kept nowhere.

    Raises CannotOpen when a header cannot be used. Not for an agent without url.
    """
    assert agent.url is not None
    said = expand(_in_file(agent), environ)
    if said.missing:
        raise sealing.CannotOpen
    opened = {
        name: sealing.unseal(value, name=name, url=agent.url)
        for name, value in agent.headers.items()
        if sealing.is_sealed(value)
    }
    headers = {**said.value, **opened}
    if not all(is_header_value(value) for value in headers.values()):
        raise sealing.CannotOpen
    return Callee(
        name=agent.name,
        graph_id=agent.graph_id,
        url=agent.url,
        headers=headers,
        use_env_key=agent.use_env_key,
        webhook=agent.webhook,
        update_strategy=agent.update_strategy,
    )


def _in_file(agent: RemoteAgent) -> dict[str, str]:
    return {name: value for name, value in agent.headers.items() if not sealing.is_sealed(value)}


def _pairs(agent: RemoteAgent) -> list[tuple[tuple[str, str], str]]:
    return [((name, mask), agent.headers[name]) for name, mask in agent.masked_headers.items()]


def _mask(name: str, value: object, url: str | None) -> str:
    if not isinstance(value, str) or not sealing.is_sealed(value):
        return MASK
    return sealing.masked(value, name=name, url=url)


def _sealed(headers: Mapping[str, str], url: str | None) -> dict[str, str]:
    """Header values as they are stored. Raises InvalidDefinition for what no request can carry or nobody can open."""
    faults, stored = [], {}
    for name, value in headers.items():
        try:
            stored[name] = _stored(name, value, url)
        except ValueError as refused:
            faults.append(Fault("headers", refused.args[0]))
    if faults:
        raise InvalidDefinition(faults)
    return stored


def _stored(name: str, value: str, url: str | None) -> str:
    if not sealing.is_sealed(value):
        if len(value) > _LONGEST_VALUE or not is_header_value(value):
            raise ValueError(Reason(_BAD_VALUE, name=name, most=_LONGEST_VALUE))
        return sealing.seal(value, name=name, url=url)
    try:
        sealing.unseal(value, name=name, url=url)
    except sealing.CannotOpen:
        raise ValueError(Reason(_OTHER_ADDRESS, name=name)) from None
    return value
