from __future__ import annotations

from django.urls import path

from subagents.api import agents, remotes, subagents

urlpatterns = [
    path("subagents", subagents.Subagents.as_view()),
    path("subagents/bulk", subagents.SubagentsBulk.as_view(), {"name": "bulk"}),
    path("subagents/<str:name>", subagents.Subagent.as_view()),
    path("subagents/<str:name>/effective", subagents.SubagentEffective.as_view()),
    path("subagents/<str:name>/references", subagents.SubagentReferences.as_view()),
    path("subagents/<str:name>/versions", subagents.SubagentVersions.as_view()),
    path("subagents/<str:name>/versions/<int:number>", subagents.SubagentVersion.as_view()),
    path("agents", agents.Agents.as_view()),
    path("agents/bulk", agents.AgentsBulk.as_view(), {"name": "bulk"}),
    path("agents/<str:name>", agents.Agent.as_view()),
    path("agents/<str:name>/versions", agents.AgentVersions.as_view()),
    path("agents/<str:name>/versions/<int:number>", agents.AgentVersion.as_view()),
    path("remote-agents", remotes.Remotes.as_view()),
    path("remote-agents/bulk", remotes.RemotesBulk.as_view(), {"name": "bulk"}),
    path("remote-agents/<str:name>", remotes.Remote.as_view()),
    path("remote-agents/<str:name>/test", remotes.RemoteTrial.as_view()),
    path("remote-agents/<str:name>/versions", remotes.RemoteVersions.as_view()),
    path("remote-agents/<str:name>/versions/<int:number>", remotes.RemoteVersion.as_view()),
]
