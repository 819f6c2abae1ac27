"""The form of a server. Checks shapes only; the service checks addresses and writes."""

from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.fleet.models import Server

# Django's form classes are generic to the type checker only.
if TYPE_CHECKING:
    ServerModelForm = forms.ModelForm[Server]
else:
    ServerModelForm = forms.ModelForm


class ServerForm(ServerModelForm):
    """Where a server is and how we may use it. The kind stays what it was made with."""

    api_key = forms.CharField(
        label=_("API key"),
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Kept encrypted and never shown. Leave empty to keep the one there is."),
    )

    class Meta:
        model = Server
        fields = [
            "name", "kind", "url", "grpc_address", "metrics_url", "api_key", "is_external",
            "is_enabled", "note",
        ]  # fmt: skip
        widgets = {"note": forms.Textarea(attrs={"rows": 2})}
        help_texts = {
            "url": _("Root of its HTTP interface, such as http://gpu-1:8000, without /v1 or /v2."),
            "grpc_address": _("Triton only: host:port. Loads go over it without blocking HTTP."),
            "metrics_url": _("Its Prometheus page; empty where there is none."),
            "is_external": _("Never used for what is marked on-prem only."),
        }

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # as the base takes them
        if self.instance.pk:
            del self.fields["kind"]

    def validate_unique(self) -> None:
        """The service decides, in its transaction, whether the name is free."""

    @property
    def values(self) -> dict[str, object]:
        """What the services take; an empty key is left out and so keeps the one there is."""
        values = dict(self.cleaned_data)
        if not values["api_key"]:
            del values["api_key"]
        return values
