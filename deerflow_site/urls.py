from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.templatetags.static import static
from django.urls import include, path
from django.utils.functional import lazy
from django.views.generic import RedirectView

from deerflow_site import own_keys
from deerflow_site.login import LoginForm
from deerflow_site.views import set_up

urlpatterns = [
    path("admin/", admin.site.urls),
    path("setup/<str:token>/", set_up, name="setup"),
    path(
        "login/",
        auth_views.LoginView.as_view(authentication_form=LoginForm, redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("keys/", own_keys.own_keys, name="own-keys"),
    path("keys/<int:number>/revoke", own_keys.revoke, name="revoke-own-key"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("favicon.ico", RedirectView.as_view(url=lazy(static, str)("runs/icon.svg"))),
    path("api/", include("deerflow_site.api_urls")),
    path("", include("runs.web.urls")),
]

handler400 = "deerflow_site.faults.bad_request"
handler403 = "deerflow_site.faults.permission_denied"
handler404 = "deerflow_site.faults.page_not_found"
handler500 = "deerflow_site.faults.server_error"
