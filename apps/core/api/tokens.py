"""REST: one's own management tokens."""

from typing import cast

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.api.serializers import StrictSerializer, validated
from apps.core.edges import actor_of
from apps.core.models import ManagementToken, User
from apps.core.roles import Permission
from apps.core.services import token_issue, token_revoke


class TokenSerializer(serializers.ModelSerializer[ManagementToken]):
    """A token without its secret; `prefix` tells which one it is."""

    class Meta:
        model = ManagementToken
        fields = ["id", "name", "prefix", "created_at", "expires_at", "revoked_at", "last_used_at"]
        read_only_fields = fields


class IssuedTokenSerializer(TokenSerializer):
    """A new token: the only answer that holds its secret."""

    secret = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class TokenInput(StrictSerializer):
    """What a new token is made of."""

    name = serializers.CharField(max_length=100)
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Left out: it does not expire."
    )


class TokenFilters(django_filters.FilterSet):
    """`is_revoked=false` leaves those that may still work."""

    is_revoked = django_filters.BooleanFilter(
        field_name="revoked_at", lookup_expr="isnull", exclude=True
    )

    class Meta:
        model = ManagementToken
        fields = ["name"]


@extend_schema_view(
    list=extend_schema(summary="Your management tokens"),
    retrieve=extend_schema(summary="One of your management tokens"),
)
class TokenViews(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[ManagementToken],
):
    """Tokens for this API, with the rights of who made them. Nobody sees those of others."""

    queryset = ManagementToken.objects.all()
    serializer_class = TokenSerializer
    lookup_value_converter = "int"
    filterset_class = TokenFilters
    # A token may never do more than its maker, so that everybody may make one.
    write_permission = Permission.VIEW

    def get_queryset(self) -> QuerySet[ManagementToken]:
        return super().get_queryset().filter(user=self.request.user.pk)

    @extend_schema(
        summary="Make a management token",
        request=TokenInput,
        responses={201: IssuedTokenSerializer},
    )
    def create(self, request: Request) -> Response:
        """Answers with the secret, this once."""
        values = validated(TokenInput, request)
        owner = cast(User, request.user)
        token, secret = token_issue(actor=actor_of(request), user=owner, **values)
        token.secret = secret  # type: ignore[attr-defined]  # for this answer only
        body = IssuedTokenSerializer(token).data
        return Response(body, status=201, headers={"Cache-Control": "no-store"})

    @extend_schema(summary="Revoke a management token", request=None, responses=TokenSerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pk: int) -> Response:
        """End the token at once; safe to repeat."""
        token = self.get_object()
        token = token_revoke(actor=actor_of(request), token_id=token.pk)
        return Response(TokenSerializer(token).data)
