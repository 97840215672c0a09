"""Addresses of the chat. The site mounts them at its root."""

from __future__ import annotations

from django.urls import path

from runs.web import actions, events, pages

urlpatterns = [
    path("", pages.home, name="home"),
    path("theme/", pages.theme, name="theme"),
    path("chat/", pages.new_chat, name="chat"),
    path("chat/new", actions.start, name="chat-start"),
    path("chat/threads", pages.thread_rail, name="chat-rail"),
    path("chat/connect-a-model/", pages.connect_model, name="connect-model"),
    path("chat/<uuid:thread_id>/", pages.thread_chat, name="chat-thread"),
    path("chat/<uuid:thread_id>/events", events.events, name="chat-events"),
    path("chat/<uuid:thread_id>/messages", actions.say, name="chat-say"),
    path("chat/<uuid:thread_id>/rename", actions.rename, name="chat-rename"),
    path("chat/<uuid:thread_id>/delete", actions.delete, name="chat-delete"),
    path("chat/<uuid:thread_id>/standing", actions.standing, name="chat-standing"),
    path("chat/<uuid:thread_id>/stop-all", actions.stop_all, name="chat-stop-all"),
    path("chat/<uuid:thread_id>/runs/<uuid:run_id>/cancel", actions.cancel, name="chat-cancel"),
    path("chat/<uuid:thread_id>/runs/<uuid:run_id>/steer", actions.steer, name="chat-steer"),
    path("chat/<uuid:thread_id>/runs/<uuid:run_id>/continue", actions.go_on, name="chat-continue"),
    path("chat/<uuid:thread_id>/runs/<uuid:run_id>/send-now", actions.send_now, name="chat-send-now"),
    path("chat/<uuid:thread_id>/runs/<uuid:run_id>/remove", actions.remove, name="chat-remove"),
]
