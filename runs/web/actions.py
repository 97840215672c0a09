"""What a person does in the chat. Each finds the rows they may touch and calls a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from runs import agents, services
from runs.continuing import continue_run
from runs.errors import BadInput, RunNotFound, ThreadNotFound
from runs.models import Run, Thread
from runs.standing import standings
from runs.statuses import RunStatus
from runs.web.answers import action, body_of, no_such_thread, signed_out
from runs.web.forms import NewMessage, read_message, read_object, read_text, read_title

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.contrib.auth.models import AbstractBaseUser


_MOST_STANDINGS = 100


def own_thread(request: HttpRequest, thread_id: UUID) -> Thread:
    """Raises ThreadNotFound for a thread that is not this person's, as for one that is not there."""
    thread = Thread.objects.visible_to(request.user).filter(pk=thread_id).first()
    if thread is None:
        raise ThreadNotFound(thread_id)
    return cast("Thread", thread)


def own_run(request: HttpRequest, thread_id: UUID, run_id: UUID) -> Run:
    """A run of this thread or one below it. Raises RunNotFound."""
    run = Run.objects.visible_to(request.user).filter(pk=run_id).first()
    if run is None:
        raise RunNotFound(run_id)
    if run.thread_id != thread_id and not Run.objects.filter(pk=run.root_id, thread_id=thread_id).exists():
        raise RunNotFound(run_id)
    return cast("Run", run)


def who(request: HttpRequest) -> str:
    """The name shown beside what this person stopped."""
    return cast("AbstractBaseUser", request.user).get_username()


def _addressed(request: HttpRequest) -> NewMessage:
    """The message in the request. Raises BadInput for one to an agent that is not there any more."""
    message = read_message(body_of(request))
    if message.options.get("agent_name") is not None:
        try:
            agents.find(message.options["agent_name"], field="options.agent_name")
        except BadInput as fault:
            raise BadInput(fault.field, _("This agent can no longer be used. Choose another one.")) from fault
    return message


@action
def start(request: HttpRequest) -> HttpResponse:
    """A first message: a new thread and its first run."""
    message = _addressed(request)
    thread = services.create_thread(owner=cast("AbstractBaseUser", request.user))
    run = services.start_run(thread=thread, text=message.text, options=message.options)
    address = reverse("chat-thread", args=[thread.pk])
    created = {"thread_id": str(thread.pk), "run_id": str(run.pk), "url": address}
    return JsonResponse(created, status=201, headers={"Location": address})


@action
def say(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    thread = own_thread(request, thread_id)
    if thread.parent_run_id is not None:
        raise ThreadNotFound(thread_id)  # a subagent's thread is its lead's to talk to
    message = _addressed(request)
    run = services.start_run(thread=thread, text=message.text, options=message.options)
    return JsonResponse({"run_id": str(run.pk)}, status=202)


@action
def cancel(request: HttpRequest, thread_id: UUID, run_id: UUID) -> HttpResponse:
    run = own_run(request, thread_id, run_id)
    stopped = services.stop_run(run_id=run.pk, by=who(request))
    done = any(one.run_id == run.pk for one in stopped)
    return JsonResponse({"done": done, "what": _named(stopped)}, status=202)


@action
def remove(request: HttpRequest, thread_id: UUID, run_id: UUID) -> HttpResponse:
    run = own_run(request, thread_id, run_id)
    return JsonResponse({"done": services.remove_queued(run_id=run.pk, by=who(request))}, status=202)


@action
def send_now(request: HttpRequest, thread_id: UUID, run_id: UUID) -> HttpResponse:
    run = own_run(request, thread_id, run_id)
    return JsonResponse({"done": services.send_now(run_id=run.pk, by=who(request))}, status=202)


@action
def stop_all(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    thread = own_thread(request, thread_id)
    stopped = services.stop_all(thread_id=thread.pk, by=who(request))
    return JsonResponse({"stopped": len(stopped), "what": _named(stopped)}, status=202)


def _named(stopped: Sequence[services.Stopped]) -> list[dict[str, str]]:
    return [{"run_id": str(one.run_id), "kind": one.kind, "agent": one.agent, "title": one.title} for one in stopped]


@action
def steer(request: HttpRequest, thread_id: UUID, run_id: UUID) -> HttpResponse:
    """A message for a run that works: it picks it up before its next model call."""
    run = own_run(request, thread_id, run_id)
    message_id = services.steer_run(run_id=run.pk, text=read_text(body_of(request)), by=who(request))
    return JsonResponse({"message_id": str(message_id)}, status=202)


@action
def go_on(request: HttpRequest, thread_id: UUID, run_id: UUID) -> HttpResponse:
    """A new run from where this one was stopped; `limits` says what to raise, else the limit that stopped it is."""
    run = own_run(request, thread_id, run_id)
    started = continue_run(run_id=run.pk, limits=read_object(body_of(request)).get("limits"))
    return JsonResponse({"run_id": str(started.pk)}, status=202)


@require_GET
def standing(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Why what has not begun waits: {"runs": {id: sentence}} for the thread's runs and the tasks below them."""
    if not request.user.is_authenticated:
        return signed_out()
    if not Thread.objects.visible_to(request.user).filter(pk=thread_id).exists():
        return no_such_thread()
    mine = Q(thread_id=thread_id) | Q(parent__thread_id=thread_id)
    waiting = Run.objects.filter(mine, status=RunStatus.PENDING).values_list("pk", flat=True)[:_MOST_STANDINGS]
    found = standings(list(waiting))
    return JsonResponse({"runs": {str(run_id): one.sentence() for run_id, one in found.items()}})


@action
def rename(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    thread = own_thread(request, thread_id)
    title = read_title(body_of(request))
    services.rename_thread(thread_id=thread.pk, title=title)
    return JsonResponse({"title": title})


@action
def delete(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    thread = own_thread(request, thread_id)
    services.delete_thread(thread_id=thread.pk, by=who(request))
    return JsonResponse({"url": reverse("chat")})
