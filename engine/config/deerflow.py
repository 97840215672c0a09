"""Keys that a DeerFlow config.yaml may hold and that mean nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.errors import KeyPath

NO_EFFECT = _("a DeerFlow option that has no effect here; it can be removed")

UNUSED_KEYS: Mapping[KeyPath, frozenset[str]] = {
    (): frozenset(
        {
            "agents_api",
            "auth",
            "channel_connections",
            "channels",
            "checkpointer",
            "circuit_breaker",
            "config_version",
            "database",
            "extensions",
            "guardrails",
            "input_polish",
            "log_level",
            "logging",
            "max_recursion_limit",
            "memory",
            "read_before_write",
            "run_events",
            "safety_finish_reason",
            "scheduler",
            "skill_evolution",
            "stream_bridge",
            "suggestions",
            "title",
            "token_budget",
            "token_usage",
            "tool_groups",
            "tool_output",
            "tool_search",
            "uploads",
        }
    ),
    ("loop_detection",): frozenset({"max_tracked_threads"}),
    ("sandbox",): frozenset(
        {
            "auto_start",
            "bash_output_max_chars",
            "container_prefix",
            "environment",
            "idle_timeout",
            "image",
            "ls_output_max_chars",
            "mounts",
            "port",
            "provisioner_url",
            "read_file_output_max_chars",
            "replicas",
            "use",
        }
    ),
    ("skills",): frozenset({"container_path", "deferred_discovery", "use"}),
    ("summarization",): frozenset({"skill_file_read_tool_names", "summary_prompt", "trim_tokens_to_summarize"}),
}
