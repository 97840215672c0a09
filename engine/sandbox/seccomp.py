"""A system call filter for what namespaces do not separate or resource limits do not count.

Key rings belong to the user, not to a namespace. Anonymous memory files and System V
segments are memory of no process, so neither a limit nor the watch over processes sees
them. The rest are doors into the kernel that a shell command has no use for. A refused
call answers "not implemented", on which programs fall back.
Source: seccomp(2), and the system call tables of Linux for the two machines.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFUSED_X86_64: Final[Mapping[str, int]] = {
    "shmget": 29,
    "msgget": 68,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "perf_event_open": 298,
    "memfd_create": 319,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "memfd_secret": 447,
}
_REFUSED_AARCH64: Final[Mapping[str, int]] = {
    "msgget": 186,
    "shmget": 194,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "perf_event_open": 241,
    "memfd_create": 279,
    "bpf": 280,
    "userfaultfd": 282,
    "io_uring_setup": 425,
    "memfd_secret": 447,
}
_MACHINES: Final[Mapping[str, tuple[int, Mapping[str, int]]]] = {
    "x86_64": (0xC000003E, _REFUSED_X86_64),
    "aarch64": (0xC00000B7, _REFUSED_AARCH64),
}
_LOAD_WORD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL_NUMBER_OFFSET, _ARCHITECTURE_OFFSET = 0, 4
_ALLOW, _KILL_PROCESS, _ANSWER_ERROR = 0x7FFF0000, 0x80000000, 0x00050000
# Calls of the x32 interface carry this bit and would pass a comparison with the plain numbers.
_X32_BIT: Final = 0x40000000


def machine_is_known() -> bool:
    return platform.machine() in _MACHINES


def build_filter() -> bytes:
    """Return the filter as an array of `struct sock_filter` for this machine.

    Raises KeyError on a machine whose call numbers are not listed: no filter, no sandbox.
    """
    architecture, refused = _MACHINES[platform.machine()]
    program = [
        _instruction(_LOAD_WORD, _ARCHITECTURE_OFFSET),
        _instruction(_JUMP_IF_EQUAL, architecture, if_true=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD_WORD, _CALL_NUMBER_OFFSET),
        _instruction(_JUMP_IF_AT_LEAST, _X32_BIT, if_true=len(refused) + 1),
    ]
    for position, number in enumerate(refused.values()):
        program.append(_instruction(_JUMP_IF_EQUAL, number, if_true=len(refused) - position))
    program.append(_instruction(_RETURN, _ALLOW))
    program.append(_instruction(_RETURN, _ANSWER_ERROR | errno.ENOSYS))
    return b"".join(program)


def _instruction(code: int, operand: int, *, if_true: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, 0, operand)
