from __future__ import annotations

from django.urls import path

from runs.api import runs, threads

urlpatterns = [
    path("threads", threads.Threads.as_view()),
    path("threads/<uuid:thread_id>", threads.Thread.as_view()),
    path("threads/<uuid:thread_id>/events", threads.ThreadEvents.as_view()),
    path("threads/<uuid:thread_id>/runs", threads.ThreadRuns.as_view()),
    path("runs", runs.Runs.as_view()),
    path("runs/<uuid:run_id>", runs.Run.as_view()),
    path("runs/<uuid:run_id>/cancel", runs.RunCancel.as_view()),
    path("runs/<uuid:run_id>/steer", runs.RunSteer.as_view()),
    path("runs/<uuid:run_id>/continue", runs.RunContinue.as_view()),
]
