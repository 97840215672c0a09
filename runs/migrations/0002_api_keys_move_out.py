from django.db import migrations


class Migration(migrations.Migration):
    """API keys belong to the app `access`: the table is renamed with its rows, only the state forgets it here."""

    dependencies = [
        ("runs", "0001_threads_and_runs"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.AlterModelTable("apikey", "access_apikey")],
            state_operations=[migrations.DeleteModel("ApiKey")],
        ),
    ]
