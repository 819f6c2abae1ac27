"""Structure that no linter sees."""

import tomllib
from pathlib import Path

from django.apps import apps

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400
# Top to bottom; the same list as the import contract in pyproject.toml.
ORDER = ["gateway", "billing", "metrics", "keys", "routes", "fleet", "catalog", "core"]


def test_the_import_contract_lists_the_apps_in_this_order() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]

    assert layers == ["inferadmin", *(f"apps.{name}" for name in ORDER)]


def test_foreign_keys_point_downwards() -> None:
    wrong = [
        f"{model._meta.label}.{field.name}"
        for label in ORDER
        for model in apps.get_app_config(label).get_models()
        for field in model._meta.get_fields()
        if field.many_to_one or field.one_to_one or field.many_to_many
        if field.concrete and field.related_model is not None
        if (target := field.related_model._meta.app_label) in ORDER
        if ORDER.index(target) < ORDER.index(label)
    ]

    assert wrong == []


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    sources = [
        path
        for folder in ("apps", "inferadmin", "tests", "templates", "frontend/src", "scripts")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".html", ".ts", ".css", ".lua"}
        if "migrations" not in path.parts
    ]
    too_long = [
        str(path.relative_to(ROOT))
        for path in sources
        if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES
    ]

    assert sources
    assert too_long == []
