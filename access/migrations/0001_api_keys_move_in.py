import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def move_content_type(source, target):
    """Permissions and history entries hang on the content type; moved, whoever had them keeps them."""

    def move(apps, schema_editor):
        ContentType = apps.get_model("contenttypes", "ContentType")
        of_keys = ContentType.objects.using(schema_editor.connection.alias).filter(model="apikey")
        if not of_keys.filter(app_label=target).exists():
            of_keys.filter(app_label=source).update(app_label=target)

    return move


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("runs", "0002_api_keys_move_out"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            # The table is there: `runs` made it and renamed it.
            state_operations=[
                migrations.CreateModel(
                    name="ApiKey",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("name", models.CharField(max_length=80, verbose_name="name")),
                        ("prefix", models.CharField(max_length=16, verbose_name="prefix")),
                        ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                        ("scopes", models.JSONField(default=list, verbose_name="scopes")),
                        ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                        ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="expires")),
                        ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="revoked")),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="api_keys",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="owner",
                            ),
                        ),
                    ],
                    options={"verbose_name": "API key", "verbose_name_plural": "API keys"},
                ),
            ],
        ),
        migrations.RunPython(move_content_type("runs", "access"), move_content_type("access", "runs")),
    ]
