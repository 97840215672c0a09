"""Processes that end with their parent, so that a killed supervisor or cluster leaves nothing working behind it.

The kernel clears the parent-death signal on every fork, so setting it once in a cluster's main process would
protect only that process: each forked one has to ask again, which a fork hook does for all of them. Standard
library only: the supervisor loads no Django.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

SUPERVISOR_VARIABLE = "SUPERVISOR_PID"
_PR_SET_PDEATHSIG = 1
_CHECK_SECONDS = 0.5
# Loaded before any fork: a child between fork and exec should not have to load a library.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_hooked = False
_forking_pid = 0


def die_with_parent(*, only_if_supervised: bool = False) -> None:
    """Have this process killed when its parent ends, and each process it forks from now on likewise.

    With `only_if_supervised` this process itself follows its parent only if that is our supervisor: a cluster
    started by hand may outlive its shell. Its forks follow in any case.
    """
    global _hooked
    if not only_if_supervised or os.environ.get(SUPERVISOR_VARIABLE) == str(os.getppid()):
        follow(_forking_pid or os.getppid())
    if not _hooked:
        os.register_at_fork(before=_remember_parent, after_in_child=_follow_parent)
        _hooked = True


def follow(parent_pid: int) -> None:
    """Have this process killed as soon as `parent_pid`, its parent, is gone; at once if it is gone already.

    On Linux the kernel does it, elsewhere a thread looks every half second.
    """
    if _libc is None:
        threading.Thread(target=_look_for, args=(parent_pid,), daemon=True).start()
        return
    if _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:  # it died between the fork and the call above, which therefore never fires
        os.kill(os.getpid(), signal.SIGKILL)


def _remember_parent() -> None:
    global _forking_pid
    # To the kernel the parent is the thread that forked: a fork from a passing thread must not follow that.
    lasting = threading.current_thread() is threading.main_thread()
    _forking_pid = os.getpid() if lasting else 0


def _follow_parent() -> None:
    if _forking_pid:
        follow(_forking_pid)


def _look_for(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_CHECK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
