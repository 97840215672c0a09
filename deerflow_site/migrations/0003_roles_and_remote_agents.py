from importlib import import_module

from django.db import migrations

roles = import_module("deerflow_site.migrations.0002_roles")

VIEW = ("subagents.view_remoteagent",)
ALL = (*VIEW, *(f"subagents.{verb}_remoteagent" for verb in ("add", "change", "delete")))


def add_permissions(apps, schema_editor):
    """Operators see remote agents, administrators change them."""
    alias = schema_editor.connection.alias
    Group = apps.get_model("auth", "Group")
    for name, wanted in (("operator", VIEW), ("administrator", ALL)):
        group, _made = Group.objects.using(alias).get_or_create(name=name)
        group.permissions.add(*(roles.permission(apps, alias, full_name) for full_name in wanted))


class Migration(migrations.Migration):
    dependencies = [
        ("deerflow_site", "0002_roles"),
        ("subagents", "0004_remote_agents"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
