"""The whole of config.yaml as frozen values, with every default of product.md §13."""

# ruff: noqa: TC003
# pydantic reads the annotations below while the program runs.

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from engine.config.connections import (
    AcpAgentConfig,
    AcpPermissionsConfig,
    EnvKeyPolicy,
    McpServerConfig,
    ModelConfig,
    OutboundConfig,
    PermissionPolicy,
    PriceConfig,
    RemoteAgentConfig,
    ToolConfig,
)
from engine.config.fields import (
    Count,
    Delegations,
    Description,
    FilePath,
    Flag,
    Fraction,
    Label,
    LargeCount,
    Line,
    Names,
    Prompt,
    Seconds,
    Section,
    Tokens,
    Turns,
)
from engine.reasons import Reason
from engine.reasons import gettext_noop as _

__all__ = [
    "AcpAgentConfig",
    "AcpPermissionsConfig",
    "AgentOverride",
    "AgentStorageConfig",
    "Config",
    "CustomAgentConfig",
    "EnvKeyPolicy",
    "LoopDetectionConfig",
    "McpServerConfig",
    "ModelConfig",
    "OutboundConfig",
    "PermissionPolicy",
    "PriceConfig",
    "RemoteAgentConfig",
    "RunTokenBudgetConfig",
    "RunsConfig",
    "SandboxConfig",
    "Section",
    "SkillsConfig",
    "SubagentsConfig",
    "SummarizationConfig",
    "SummaryKeep",
    "SummaryTrigger",
    "TokenBudgetConfig",
    "ToolConfig",
    "ToolFrequency",
]


def _not_below(value: int, info: ValidationInfo, other: str) -> int:
    floor = info.data.get(other, value)
    if value < floor:
        sentence = _("%(value)s is below %(other)s, which is %(floor)s")
        raise ValueError(Reason(sentence, value=value, other=other, floor=floor))
    return value


class TokenBudgetConfig(Section):
    """What one layer says about a token budget; a field it leaves out comes from the layer below."""

    enabled: Flag | None = None
    max_tokens: Tokens | None = None
    warn_threshold: Fraction | None = None


class AgentOverride(Section):
    """What `subagents.agents.<name>` changes; `model_fields_set` says which fields it names.

    `skills` `()` takes every skill away; leaving it out (or null) changes nothing.
    """

    timeout_seconds: Seconds | None = None
    max_turns: Turns | None = None
    model: Line | None = None
    skills: Names | None = None
    token_budget: TokenBudgetConfig | None = None
    thinking_enabled: Flag | None = None


class CustomAgentConfig(Section):
    """A subagent defined in the file. For `tools` and `skills` None is all, `()` none, else only these."""

    display_name: Label = ""
    description: Description
    system_prompt: Prompt
    model: Line = "inherit"
    tools: Names | None = None
    disallowed_tools: Names = ()
    skills: Names | None = None
    max_turns: Turns | None = None
    timeout_seconds: Seconds | None = None
    token_budget: TokenBudgetConfig | None = None
    enabled: Flag = True


class SubagentsConfig(Section):
    """Limits of delegation and the subagents of the file, under their normalised names."""

    timeout_seconds: Seconds | None = 1800
    max_turns: Turns | None = None
    max_total_per_run: Delegations = 6
    max_concurrent_limit: Delegations = 4
    max_concurrent: Annotated[Delegations, Field(validate_default=True)] = 3
    token_budget: TokenBudgetConfig | None = None
    thinking_enabled: Flag = False
    agents: Mapping[str, AgentOverride] = Field(default_factory=dict)
    custom_agents: Mapping[str, CustomAgentConfig] = Field(default_factory=dict)

    @field_validator("max_concurrent")
    @classmethod
    def _within_the_limit(cls, count: int, info: ValidationInfo) -> int:
        limit = info.data.get("max_concurrent_limit", count)
        if count > limit:
            sentence = _("%(value)s is above %(other)s, which is %(limit)s")
            raise ValueError(Reason(sentence, value=count, other="max_concurrent_limit", limit=limit))
        return count


class AgentStorageConfig(Section):
    """Where managed definitions are kept."""

    backend: Literal["db", "file"] = "db"


class ToolFrequency(Section):
    """How often one tool may be called, with any arguments, before a warning and before the stop."""

    warn: LargeCount
    hard_limit: LargeCount

    @field_validator("hard_limit")
    @classmethod
    def _warn_comes_first(cls, limit: int, info: ValidationInfo) -> int:
        return _not_below(limit, info, "warn")


class LoopDetectionConfig(Section):
    """When repeated tool calls are warned about and stopped. Numbers are tool calls or sets of them."""

    enabled: Flag = True
    warn_threshold: Count = 3
    hard_limit: Annotated[Count, Field(validate_default=True)] = 5
    window_size: Annotated[Count, Field(validate_default=True)] = 20
    tool_freq_warn: LargeCount = 30
    tool_freq_hard_limit: Annotated[LargeCount, Field(validate_default=True)] = 50
    tool_freq_overrides: Mapping[str, ToolFrequency] = Field(default_factory=dict)

    @field_validator("hard_limit")
    @classmethod
    def _warn_comes_first(cls, limit: int, info: ValidationInfo) -> int:
        return _not_below(limit, info, "warn_threshold")

    @field_validator("window_size")
    @classmethod
    def _window_holds_the_limit(cls, size: int, info: ValidationInfo) -> int:
        return _not_below(size, info, "hard_limit")

    @field_validator("tool_freq_hard_limit")
    @classmethod
    def _frequency_warn_comes_first(cls, limit: int, info: ValidationInfo) -> int:
        return _not_below(limit, info, "tool_freq_warn")


class SummaryTrigger(Section):
    """Sizes that make the history be summarised; the first one reached counts.

    `fraction` is of the model's context.
    """

    tokens: Tokens | None = None
    messages: LargeCount | None = None
    fraction: Fraction | None = None

    @model_validator(mode="after")
    def _names_a_size(self) -> SummaryTrigger:
        if not self.model_fields_set:
            raise ValueError(Reason(_("name at least one of tokens, messages and fraction")))
        return self


class SummaryKeep(Section):
    """How much of the end of the history stays as it is; exactly one of the three is set."""

    tokens: Tokens | None = None
    messages: LargeCount | None = None
    fraction: Fraction | None = None

    @model_validator(mode="after")
    def _names_one_size(self) -> SummaryKeep:
        if len(self.model_fields_set) != 1:
            raise ValueError(Reason(_("name exactly one of tokens, messages and fraction")))
        return self


class SummarizationConfig(Section):
    """One switch for lead and subagents. `model_name` None: each run's own model writes its summaries."""

    enabled: Flag = False
    trigger: SummaryTrigger = SummaryTrigger(tokens=32_000)
    keep: SummaryKeep = SummaryKeep(messages=10)
    model_name: Line | None = None


class SandboxConfig(Section):
    """Where commands run. `workspace_root` None: a folder inside DEER_FLOW_HOME."""

    provider: Literal["auto", "bubblewrap", "local"] = "auto"
    allow_host_bash: Flag = False
    network: Flag = False
    workspace_root: FilePath | None = None


class SkillsConfig(Section):
    """Where skills lie; a relative path is taken from the configuration file's folder."""

    path: FilePath = "skills"


class RunTokenBudgetConfig(Section):
    """A bound on the tokens of a lead and all its children together."""

    enabled: Flag = True
    max_tokens: Tokens
    warn_threshold: Fraction = 0.7


class RunsConfig(Section):
    """Limits of leads' runs and the shape of the workers. `workers` needs a restart to change."""

    timeout_seconds: Seconds = 3600
    max_turns: Turns = 200
    token_budget: RunTokenBudgetConfig | None = None
    max_attempts: Count = 3
    workers: Count = 2
    slots_per_worker: LargeCount = 100
    max_pending_per_owner: LargeCount = 50
    retention_days: LargeCount = 30


class Config(Section):
    """One config.yaml, complete: what the file leaves out has its default."""

    models: tuple[ModelConfig, ...] = ()
    subagents: SubagentsConfig = SubagentsConfig()
    agent_storage: AgentStorageConfig = AgentStorageConfig()
    loop_detection: LoopDetectionConfig = LoopDetectionConfig()
    summarization: SummarizationConfig = SummarizationConfig()
    sandbox: SandboxConfig = SandboxConfig()
    skills: SkillsConfig = SkillsConfig()
    tools: tuple[ToolConfig, ...] = ()
    mcp_servers: Mapping[str, McpServerConfig] = Field(default_factory=dict)
    langgraph_json: FilePath = "langgraph.json"
    async_subagents: tuple[RemoteAgentConfig, ...] = ()
    outbound: OutboundConfig = OutboundConfig()
    acp_agents: Mapping[str, AcpAgentConfig] = Field(default_factory=dict)
    runs: RunsConfig = RunsConfig()
