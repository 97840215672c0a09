"""Keys made before they belonged to an app of their own go on to work."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from access import keys

BEFORE = [("runs", "0001_threads_and_runs"), ("access", None)]


@pytest.mark.django_db(transaction=True)
def test_rows_permissions_and_the_way_back():
    owner = get_user_model().objects.create_user("ada")
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    row, key = keys.make_key(owner, "kept", ["run"])
    try:
        MigrationExecutor(connection).migrate(BEFORE)
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM runs_apikey WHERE id = %s", [row.pk])
            assert cursor.fetchone() == ("kept",)
        kinds = ContentType.objects.filter(model="apikey")
        assert [kind.app_label for kind in kinds] == ["runs"]
        of_before = kinds.get().pk
    finally:
        MigrationExecutor(connection).migrate(leaves)
    caller = keys.authenticate(key)
    assert caller is not None
    assert (caller.owner_id, caller.scopes) == (owner.pk, {"run"})
    assert kinds.get().pk == of_before
    assert kinds.get().app_label == "access"
    keys.make_key(owner, "another one", ["read"])
