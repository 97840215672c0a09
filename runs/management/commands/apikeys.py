"""API keys: create one (shown once), list them, revoke one."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs import api_keys
from runs.errors import BadInput
from runs.models import ApiKey

_MOST_DAYS = 36_500


class Command(BaseCommand):
    help = "Create, list and revoke API keys."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a key; it is printed once and cannot be read again")
        create.add_argument("--user", required=True)
        create.add_argument("--name", default="")
        create.add_argument("--scope", action="append", default=[], help="read, run or admin; may be repeated")
        create.add_argument("--days", type=int, help="how long it is valid; without it, until it is revoked")
        listing = verbs.add_parser("list", help="all keys")
        revoke = verbs.add_parser("revoke", help="make a key useless at once")
        revoke.add_argument("id", type=int)
        for verb in (create, listing, revoke):
            verb.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, f"_{options['verb']}")(options)

    def _create(self, options: dict[str, Any]) -> None:
        owner = get_user_model().objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"no user {options['user']}", returncode=3)
        scopes = options["scope"] or ["run"]
        try:
            expires_at = _after(options["days"])
            row, key = api_keys.make_key(owner, options["name"] or "command line", scopes, expires_at)
        except BadInput as fault:
            raise CommandError(str(fault), returncode=2) from None
        if options["json"]:
            until = expires_at.isoformat() if expires_at else None
            self.stdout.write(json.dumps({"id": row.pk, "key": key, "scopes": row.scopes, "expires_at": until}))
        else:
            self.stdout.write(f"{key}\nKeep it: it is not shown again. Scopes: {', '.join(row.scopes)}.")

    def _list(self, options: dict[str, Any]) -> None:
        rows = [
            {
                "id": row.pk,
                "user": row.owner.get_username(),
                "name": row.name,
                "prefix": row.prefix,
                "scopes": row.scopes,
                "state": _state(row),
            }
            for row in ApiKey.objects.select_related("owner").order_by("pk")
        ]
        if options["json"]:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            state = ",".join(row["scopes"]) if row["state"] == "valid" else row["state"]
            self.stdout.write(f"{row['id']:>4}  {row['prefix']}…  {row['user']}  {state}  {row['name']}")

    def _revoke(self, options: dict[str, Any]) -> None:
        revoked = api_keys.revoke(options["id"])
        if not revoked:
            raise CommandError(f"no valid key {options['id']}", returncode=3)
        self.stdout.write(
            json.dumps({"revoked": options["id"]}) if options["json"] else f"Key {options['id']} revoked."
        )


def _after(days: int | None) -> datetime | None:
    if days is None:
        return None
    if not 1 <= days <= _MOST_DAYS:
        raise BadInput("days", f"expected 1 to {_MOST_DAYS}")
    return timezone.now() + timedelta(days=days)


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= timezone.now() else "valid"
