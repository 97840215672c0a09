"""What can go wrong between an agent and its workspace."""

from __future__ import annotations


class SandboxError(Exception):
    """Base of everything the sandbox raises on purpose; its text is a sentence to be read."""


class SandboxUnavailable(SandboxError):
    """No command may run here; the text says why."""


class WorkspaceError(SandboxError):
    """A path or a file operation was refused; the text names the path as its caller wrote it."""
