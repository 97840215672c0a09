"""Options for what lives outside the process: models, tools, MCP servers, remote and ACP agents."""

# pydantic reads the annotations below while the program runs.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from engine.config.fields import (
    Count,
    Description,
    Environment,
    Expected,
    FilePath,
    Flag,
    Headers,
    HostOrNetwork,
    HttpUrl,
    HttpUrlOrVariable,
    Label,
    LabelName,
    Line,
    Note,
    Price,
    Retries,
    Seconds,
    Section,
    SubagentName,
    Temperature,
    Tokens,
    Use,
    Words,
)
from engine.reasons import Reason
from engine.reasons import gettext_noop as _


class PriceConfig(Section):
    """Prices per million tokens, in the deployment's one currency. `cached_input` None: as `input`."""

    input: Price
    cached_input: Price | None = None
    output: Price


class ModelConfig(Section):
    """One chat model. Keys that are not fields here are `extra`: keyword arguments for the class `use` names.

    `$VAR` stays as written in `api_key`, `base_url`, `model` and `extra`; `expand_model` replaces it. What stands in
    `when_thinking_…` is passed on besides, and wins, in runs that shall think at length or shall not.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    name: LabelName
    use: Use
    display_name: Label = ""
    model: Line | None = None
    api_key: Annotated[Words | None, Field(repr=False)] = None
    base_url: HttpUrlOrVariable | None = None
    temperature: Temperature | None = None
    max_tokens: Tokens | None = None
    timeout_seconds: Seconds | None = None
    price: PriceConfig | None = None
    max_concurrency: Count | None = None
    max_retries: Retries = 2
    when_thinking_enabled: Mapping[str, JsonValue] = Field(default_factory=dict)
    when_thinking_disabled: Mapping[str, JsonValue] = Field(default_factory=dict)

    @property
    def extra(self) -> Mapping[str, JsonValue]:
        return self.__pydantic_extra__

    @field_validator("name")
    @classmethod
    def _inherit_is_taken(cls, name: str) -> str:
        if name == "inherit":
            raise ValueError(Reason(_("inherit is the word for the lead's own model and cannot name one")))
        return name

    @property
    def tells_thinking(self) -> bool:
        """Whether it matters to the model if a run shall think."""
        return bool(self.when_thinking_enabled or self.when_thinking_disabled)

    def thinking(self, enabled: bool) -> ModelConfig:
        """The entry of a run that shall think at length, or shall not."""
        more = dict(self.when_thinking_enabled if enabled else self.when_thinking_disabled)
        for name, value in more.items():
            said = self.extra.get(name)
            if isinstance(value, Mapping) and isinstance(said, Mapping):
                more[name] = {**said, **value}  # such as extra_body, which may hold other things as well
        return self.model_copy(update=more) if more else self

    @model_validator(mode="after")
    def _extra_keys_can_be_arguments(self) -> ModelConfig:
        keys = [*self.extra, *self.when_thinking_enabled, *self.when_thinking_disabled]
        wrong = [key for key in keys if not key.isidentifier()]
        if wrong:
            sentence = _("the option %(name)s cannot be passed on as a keyword argument")
            raise ValueError(Reason(sentence, name=repr(wrong[0][:60])))
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        yield from (pair for pair in super().__repr_args__() if pair[0] not in self.extra)


class ToolConfig(Section):
    """One further tool for leads, found at `use`."""

    name: LabelName
    use: Use
    group: Label = ""


McpTransport = Literal["stdio", "sse", "streamable_http"]


class McpServerConfig(Section):
    """One MCP server: started as a process (`command`) or reached at a `url`, exactly one of them."""

    command: FilePath | None = None
    args: tuple[Words, ...] = ()
    env: Environment
    cwd: FilePath | None = None
    headers: Headers
    url: Annotated[HttpUrl | None, Field(validate_default=True)] = None
    transport: Annotated[McpTransport | None, Field(validate_default=True)] = None
    description: Note = ""
    enabled: Flag = True
    timeout_seconds: Seconds = 60

    @field_validator("url")
    @classmethod
    def _one_way_in(cls, url: str | None, info: ValidationInfo) -> str | None:
        if "command" in info.data and (url is None) == (info.data["command"] is None):
            raise ValueError(Reason(_("a server has either a command or a url")))
        return url

    @field_validator("transport")
    @classmethod
    def _transport_fits(cls, transport: McpTransport | None, info: ValidationInfo) -> McpTransport | None:
        if "url" not in info.data:
            return transport
        possible = {"stdio"} if info.data["url"] is None else {"streamable_http", "sse"}
        if transport is not None and transport not in possible:
            raise ValueError(Reason(_("stdio goes with a command, sse and streamable_http go with a url")))
        return transport or ("stdio" if info.data["url"] is None else "streamable_http")


class EnvKeyPolicy(StrEnum):
    """When the SDK's environment keys go along: to LangChain's own hosts, always, or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def env_key_policy(value: object) -> EnvKeyPolicy:
    """The policy that `auto`, true or false says. Raises Expected for anything else."""
    if isinstance(value, EnvKeyPolicy):
        return value
    if isinstance(value, bool):
        return EnvKeyPolicy.ALWAYS if value else EnvKeyPolicy.NEVER
    if value == "auto":
        return EnvKeyPolicy.AUTO
    raise Expected(_("expected auto, true or false, got %(got)s"))


class RemoteAgentConfig(Section):
    """One async subagent. `url` None: a graph of this deployment; otherwise an Agent Protocol server.

    Source: product.md §6 and the keys deepagents 0.7.32 accepts.
    """

    name: SubagentName
    description: Description
    graph_id: Line
    url: HttpUrl | None = None
    headers: Headers
    use_env_key: Annotated[EnvKeyPolicy, BeforeValidator(env_key_policy)] = EnvKeyPolicy.AUTO
    webhook: HttpUrl | None = None
    update_strategy: Literal["interrupt", "enqueue"] = "interrupt"
    notify_parent: Flag = True
    mode: Literal["isolated", "fork"] = "isolated"


class PermissionPolicy(StrEnum):
    """What happens when an ACP agent asks for permission."""

    DENY = "deny"
    ALLOW_ONCE = "allow_once"
    ASK = "ask"


class AcpPermissionsConfig(Section):
    """A policy per ACP tool kind. None: `default`, which never allows: what is allowed is named."""

    default: Literal["deny", "ask"] = "deny"
    read: PermissionPolicy | None = None
    edit: PermissionPolicy | None = None
    delete: PermissionPolicy | None = None
    move: PermissionPolicy | None = None
    search: PermissionPolicy | None = None
    execute: PermissionPolicy | None = None
    think: PermissionPolicy | None = None
    fetch: PermissionPolicy | None = None
    switch_mode: PermissionPolicy | None = None
    other: PermissionPolicy | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_word_for_all(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value not in {"deny", "ask"}:
            raise Expected(_("expected deny, ask, or a mapping of tool kinds to deny, allow_once or ask, got %(got)s"))
        return {"default": value}


class AcpAgentConfig(Section):
    """One external agent process: an explicit argv, never a shell line. `env` values may hold `$VAR`."""

    command: FilePath
    args: tuple[Words, ...] = ()
    env: Environment
    description: Description
    model: Line | None = None
    timeout_seconds: Seconds = 1800
    permissions: AcpPermissionsConfig | None = None
    auto_approve_permissions: Flag = False

    @field_validator("auto_approve_permissions")
    @classmethod
    def _one_permission_rule(cls, approve: bool, info: ValidationInfo) -> bool:
        if approve and info.data.get("permissions") is not None:
            raise ValueError(Reason(_("write either permissions or auto_approve_permissions")))
        return approve

    def policy_for(self, tool_kind: str) -> PermissionPolicy:
        """The policy for one ACP tool kind; a kind that nobody named follows the default."""
        if self.auto_approve_permissions:
            return PermissionPolicy.ALLOW_ONCE
        rules = self.permissions or AcpPermissionsConfig()
        named = getattr(rules, tool_kind) if tool_kind in AcpPermissionsConfig.model_fields else None
        return PermissionPolicy(named or rules.default)


class OutboundConfig(Section):
    """Hosts and networks, besides public ones, that requests made for agents may reach."""

    allow_private: tuple[HostOrNetwork, ...] = ()
