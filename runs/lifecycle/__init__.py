"""The one place where runs change status: a table of moves, fenced by the attempt, one transaction per batch.

Claiming and renewing stand in runs.lifecycle.claims: they also lock queue rows.
"""

from __future__ import annotations

from runs.lifecycle.commit import Held, Verb, commit, commit_one
from runs.lifecycle.continuing import ContinueChild
from runs.lifecycle.editing import UpdateState, UpdateThread
from runs.lifecycle.ending import Cancel, Ending, Finish, end
from runs.lifecycle.progress import HandOver, Progress, waiting
from runs.lifecycle.removing import EndNow, remove_run, roll_back_run, start_instead
from runs.lifecycle.rewinding import Rewind, roll_back, take_back
from runs.lifecycle.start import OpenThread, Start, StartAlone, StartChild
from runs.lifecycle.steering import ReadSteers, Steer

__all__ = [
    "Cancel",
    "ContinueChild",
    "EndNow",
    "Ending",
    "Finish",
    "HandOver",
    "Held",
    "OpenThread",
    "Progress",
    "ReadSteers",
    "Rewind",
    "Start",
    "StartAlone",
    "StartChild",
    "Steer",
    "UpdateState",
    "UpdateThread",
    "Verb",
    "commit",
    "commit_one",
    "end",
    "remove_run",
    "roll_back",
    "roll_back_run",
    "start_instead",
    "take_back",
    "waiting",
]
