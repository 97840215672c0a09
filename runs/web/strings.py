"""The words the page's modules use, in the language of the request.

A key with `_one` and `_other` is chosen by the browser's plural rules. Placeholders are named: %(n)s.
"""

from __future__ import annotations

from django.utils.translation import gettext as _


def page_strings() -> dict[str, str]:
    return {**_statuses(), **_facts(), **_cards(), **_conversation(), **_refusals()}


def _statuses() -> dict[str, str]:
    return {
        "queued": _("Queued"),
        "running": _("Running"),
        "stopping": _("Stopping…"),
        "quiet": _("Quiet for %(time)s"),
        "done": _("Done"),
        "cut_short": _("Done, cut short"),
        "failed": _("Failed"),
        "timed_out": _("Timed out"),
        "cancelled": _("Cancelled"),
        "cancelled_by": _("Cancelled by %(who)s"),
        "interrupted": _("Interrupted"),
        "unknown": _("Unknown"),
    }


def _facts() -> dict[str, str]:
    return {
        "turn_of": _("turn %(n)s / %(limit)s"),
        "turns_one": _("%(n)s turn"),
        "turns_other": _("%(n)s turns"),
        "tokens": _("%(n)s tok"),
        "tokens_of": _("%(n)s / %(limit)s tok"),
        "seconds_ago": _("%(n)s s ago"),
        "minutes_ago": _("%(n)s min ago"),
        "hours_ago": _("%(n)s h ago"),
        "seconds": _("%(n)s s"),
        "times_out_in": _("times out in %(time)s"),
        "worker": _("on %(worker)s"),
        "attempt": _("attempt %(n)s"),
        "used_of": _("%(n)s of %(limit)s"),
        "longest": _("longest %(time)s"),
        "tasks_running_one": _("%(n)s task running"),
        "tasks_running_other": _("%(n)s tasks running"),
        "messages_queued_one": _("%(n)s message queued"),
        "messages_queued_other": _("%(n)s messages queued"),
    }


def _cards() -> dict[str, str]:
    return {
        "subagents_one": _("%(n)s subagent"),
        "subagents_other": _("%(n)s subagents"),
        "n_running": _("%(n)s running"),
        "n_queued": _("%(n)s queued"),
        "n_done": _("%(n)s done"),
        "n_ended_early": _("%(n)s ended early"),
        "starting": _("Waits for a free worker."),
        "thinking": _("Thinking"),
        "show_details": _("Show details of %(title)s"),
        "hide_details": _("Hide details of %(title)s"),
        "prompt": _("Prompt"),
        "steps": _("Steps"),
        "result": _("Result"),
        "no_steps": _("No steps yet."),
        "earlier_steps_one": _("%(n)s earlier step is on the task's own page."),
        "earlier_steps_other": _("%(n)s earlier steps are on the task's own page."),
        "step_running": _("running"),
        "step_failed": _("failed"),
        "open": _("Open"),
        "cancel": _("Cancel"),
        "cancel_task": _("Cancel %(title)s"),
        "steer": _("Send"),
        "steer_hint": _("Tell it something while it works"),
        "steer_task": _("Message to %(title)s"),
        "steer_waits": _("waits for its next turn"),
        "steer_read": _("picked up at turn %(n)s"),
        "steer_late": _("not read: it had ended"),
        "go_on": _("Continue"),
        "go_on_turns": _("Continue with %(n)s turns"),
        "go_on_tokens": _("Continue with %(n)s tokens"),
        "go_on_seconds": _("Continue with %(n)s"),
        "why_cut_short": _("Cut short."),
        "why_failed": _("It failed."),
        "why_timed_out": _("It ran out of time."),
        "why_cancelled": _("It was cancelled."),
        "no_active": _("Nothing is running."),
        "no_ended": _("Nothing has ended yet."),
    }


def _conversation() -> dict[str, str]:
    return {
        "lead_agent": _("Lead agent"),
        "ask": _("Ask %(name)s"),
        "agent_gone": _("“%(name)s” can no longer be used. The next message goes to another agent."),
        "you": _("You"),
        "working": _("Working"),
        "waiting_children": _("Waiting for its subagents"),
        "waiting_slot": _("Waiting for a free slot"),
        "waiting_person": _("Waiting for a person"),
        "waiting_model": _("Waiting for its turn at the model"),
        "waiting_retry": _("The model failed; it is asked again in a moment"),
        "waiting_worker": _("Waiting for a free worker"),
        "queued_behind": _("Queued behind the running answer"),
        "send_now": _("Send now"),
        "remove": _("Remove"),
        "removed": _("Taken out of the queue"),
        "rewound": _("Went on from an earlier point of the conversation"),
        "continued": _("Continued on another worker, attempt %(n)s"),
        "run_failed": _("The answer failed."),
        "run_timed_out": _("The answer ran out of time."),
        "run_cancelled": _("The answer was stopped."),
        "run_interrupted": _("Interrupted by a newer message."),
        "run_cut_short": _("The answer was cut short."),
        "answer_finished": _("The answer is finished."),
        "show_all": _("Show the whole message"),
        "show_less": _("Show less"),
        "reconnecting": _("Reconnecting, nothing is lost."),
        "polling": _("Live connection blocked; asking again every few seconds instead."),
        "stopped": _("Told to stop: %(what)s"),
        "stopped_answer": _("the answer"),
        "stopped_message": _("a waiting message"),
        "said_continue": _("Continue where it stopped"),
        "said_task": _("A continued task has its answer"),
        "task_announcement": _("%(name)s, %(title)s: %(status)s"),
    }


def _refusals() -> dict[str, str]:
    return {
        "empty": _("Write a message first."),
        "too_long": _("The message has %(n)s characters; %(limit)s are allowed. Shorten it, nothing is lost."),
        "not_sent": _("Not sent. Your text is still here; try again."),
        "action_failed": _("That did not work. Try again."),
        "already_ended": _("It had already ended."),
        "forbidden": _("The page is out of date. Reload it; what you wrote is kept."),
        "signed_out": _("Your session has ended. Sign in again; what you wrote is kept."),
        "no_longer_allowed": _("You may no longer read this conversation."),
        "no_such_thread": _("This conversation does not exist any more."),
    }
