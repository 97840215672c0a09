from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="SetupLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
            ],
            options={"verbose_name": "set-up link", "verbose_name_plural": "set-up links"},
        ),
        migrations.CreateModel(
            name="FailedLogin",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "failed login",
                "verbose_name_plural": "failed logins",
                "indexes": [models.Index(fields=["key", "at"], name="failed_login_key_at")],
            },
        ),
    ]
