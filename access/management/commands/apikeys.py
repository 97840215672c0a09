"""API keys: create one (shown once), list them, revoke one."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.utils import timezone

from access import keys
from access.console import Exit, VerbCommand
from access.errors import BadKeyRequest
from access.models import ApiKey


class Command(VerbCommand):
    help = "Create, list and revoke API keys."
    examples = {
        "create": "apikeys create --user ada --name build-bot --scope run --days 90\n"
        "apikeys create --user ada --scope read --scope admin --json",
        "list": "apikeys list\napikeys list --user ada --json",
        "revoke": "apikeys revoke 7",
    }

    def add_verbs(self, add: Any) -> None:
        create = add("create", help="make a key; it is printed once and cannot be read again")
        create.add_argument("--user", required=True, help="whom the key speaks for")
        create.add_argument("--name", default="", help="what it is for")
        create.add_argument("--scope", action="append", default=[], help="read, run or admin; may be repeated")
        create.add_argument("--days", type=int, help="how long it is valid; without it, until it is revoked")
        listing = add("list", help="all keys, without the keys themselves")
        listing.add_argument("--user", help="only the keys of this user")
        revoke = add("revoke", help="make a key useless at once")
        revoke.add_argument("id", type=int)

    def do_create(self, options: dict[str, Any]) -> None:
        owner = _user(options["user"])
        try:
            row, key = keys.make_key(
                owner, options["name"] or "command line", options["scope"] or ["run"], keys.expiry(options["days"])
            )
        except BadKeyRequest as fault:
            raise CommandError(str(fault), returncode=Exit.USAGE) from None
        if options["json"]:
            until = row.expires_at.isoformat() if row.expires_at else None
            self.answer({"id": row.pk, "key": key, "scopes": row.scopes, "expires_at": until})
            return
        self.lines(key)
        self.tell(f"Keep it: it is not shown again. Scopes: {', '.join(row.scopes)}.")

    def do_list(self, options: dict[str, Any]) -> None:
        rows = ApiKey.objects.select_related("owner").order_by("pk")
        if options["user"] is not None:
            rows = rows.filter(owner=_user(options["user"]))
        found = [_shown(row) for row in rows]
        if options["json"]:
            self.answer(found)
            return
        self.table(
            ("id", "key", "user", "scopes", "state", "last used", "name"),
            [
                (
                    str(row["id"]),
                    f"{row['prefix']}…",
                    row["user"],
                    ",".join(row["scopes"]),
                    row["state"],
                    row["last_used_at"] or "never",
                    row["name"],
                )
                for row in found
            ],
        )

    def do_revoke(self, options: dict[str, Any]) -> None:
        # A number too long for the database is no key's.
        if options["id"] >= 2**63 or not keys.revoke(options["id"]):
            raise CommandError(f"no valid key {options['id']}", returncode=Exit.NOT_FOUND)
        if options["json"]:
            self.answer({"revoked": options["id"]})
        else:
            self.tell(f"Key {options['id']} revoked.")


def _user(name: str) -> Any:
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"no user {name}", returncode=Exit.NOT_FOUND)
    return user


def _shown(row: ApiKey) -> dict[str, Any]:
    return {
        "id": row.pk,
        "user": row.owner.get_username(),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "state": row.state(timezone.now()),
        "created_at": row.created_at.isoformat(),
        "expires_at": row.expires_at and row.expires_at.isoformat(),
        "last_used_at": row.last_used_at and row.last_used_at.isoformat(timespec="minutes"),
    }
