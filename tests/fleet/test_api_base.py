"""Where the paths of an API begin, however its address was copied."""

import pytest

from apps.fleet.addresses import api_base


@pytest.mark.parametrize(
    ("url", "version", "base"),
    [
        ("http://gpu:8000", "v1", "http://gpu:8000/v1"),
        ("http://gpu:8000/", "v1", "http://gpu:8000/v1"),
        ("https://api.example/v1", "v1", "https://api.example/v1"),
        ("https://api.z.ai/api/paas/v4", "v1", "https://api.z.ai/api/paas/v4"),
        ("https://g.example/v1beta/openai", "v1", "https://g.example/v1beta/openai"),
        ("https://g.example/v1beta", "v1beta", "https://g.example/v1beta"),
        ("https://g.example", "v1beta", "https://g.example/v1beta"),
        ("https://v2.example/vault", "v1", "https://v2.example/vault/v1"),
    ],
)
def test_the_version_is_added_unless_the_address_names_one(
    url: str, version: str, base: str
) -> None:
    assert api_base(url, version) == base
