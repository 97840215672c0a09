"""Pages of the site itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model, login
from django.contrib.auth.forms import BaseUserCreationForm, UsernameField
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from deerflow_site import setup_link

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_GONE = 410
_MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


class FirstAdministratorForm(BaseUserCreationForm):  # type: ignore[type-arg]
    class Meta:
        model = get_user_model()
        fields = ("username",)
        field_classes = {"username": UsernameField}


@sensitive_post_parameters("password1", "password2")
@never_cache
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """The first administrator chooses a name and a password; afterwards, and for any other token: 410."""
    now = timezone.now()
    if not setup_link.is_open(token, now):
        return render(request, "deerflow_site/setup_spent.html", status=_GONE)
    form = FirstAdministratorForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "deerflow_site/setup.html", {"form": form})
    try:
        user = setup_link.use(token, form, now)
    except setup_link.LinkSpent:
        return render(request, "deerflow_site/setup_spent.html", status=_GONE)
    login(request, user, backend=_MODEL_BACKEND)
    return redirect("chat")
