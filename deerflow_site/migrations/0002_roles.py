from django.db import migrations

KEYS = ("access.view_apikey", "access.add_apikey", "access.change_apikey")
MEMBER = ("subagents.view_managedsubagent", "subagents.view_customagent", *KEYS)
OPERATOR = (
    *MEMBER,
    "subagents.view_prompt",
    "subagents.view_revision",
    "runs.view_run",
    "runs.change_run",
    "runs.view_workerheartbeat",
    "django_q.view_ormq",
    "django_q.view_success",
    "django_q.view_failure",
)
ADMINISTRATOR = (
    *OPERATOR,
    *(
        f"subagents.{verb}_{model}"
        for verb in ("add", "change", "delete")
        for model in ("managedsubagent", "customagent")
    ),
    "access.all_keys",
    *(f"auth.{verb}_{model}" for verb in ("view", "add", "change", "delete") for model in ("user", "group")),
)
ROLES = {"member": MEMBER, "operator": OPERATOR, "administrator": ADMINISTRATOR}


def add_roles(apps, schema_editor):
    """Make the three groups and give each its permissions; what somebody else gave them stays."""
    alias = schema_editor.connection.alias
    Group = apps.get_model("auth", "Group")
    for name, wanted in ROLES.items():
        group, _made = Group.objects.using(alias).get_or_create(name=name)
        group.permissions.add(*(permission(apps, alias, full_name) for full_name in wanted))


def permission(apps, alias, full_name):
    """The permission of this name; Django itself makes it only after all migrations have run, and then keeps ours."""
    label, codename = full_name.split(".")
    kinds = apps.get_model("contenttypes", "ContentType").objects.using(alias)
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    verb, _underscore, model = codename.partition("_")
    custom = {"view_prompt": "managedsubagent", "all_keys": "apikey"}
    kind, _made = kinds.get_or_create(app_label=label, model=custom.get(codename, model))
    title = dict(apps.get_model(label, kind.model)._meta.permissions).get(codename)
    title = title or f"Can {verb} {apps.get_model(label, kind.model)._meta.verbose_name}"
    return permissions.get_or_create(content_type=kind, codename=codename, defaults={"name": title})[0]


class Migration(migrations.Migration):
    """Roles: member, operator, administrator (docs/operating.md)."""

    dependencies = [
        ("deerflow_site", "0001_setup_links_and_failed_logins"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("access", "0002_api_key_last_use"),
        ("django_q", "0018_task_success_index"),
        ("runs", "0002_api_keys_move_out"),
        ("subagents", "0002_stored_definitions_and_their_history"),
    ]

    operations = [
        migrations.RunPython(add_roles, migrations.RunPython.noop),
    ]
