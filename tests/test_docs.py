"""The documents name what the code has."""

import re
from pathlib import Path

import yaml
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer

from apps.core import errors

ROOT = Path(__file__).resolve().parent.parent
_READS = re.compile(r"env_(?:str|int|bool|list|secret)\(\s*\"([A-Z_]+)\"")
_CODES = re.compile(r"\bcode=\"([a-z_]+)\"")


def _python_files() -> list[Path]:
    return [*(ROOT / "apps").rglob("*.py"), *(ROOT / "inferadmin").rglob("*.py")]


def test_every_environment_variable_is_documented() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    names = {
        f"INFERADMIN_{name}"
        for path in _python_files()
        for name in _READS.findall(path.read_text())
    }

    assert len(names) > 10
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_every_error_code_is_documented() -> None:
    text = (ROOT / "docs/errors.md").read_text()
    classes = [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, errors.InferAdminError)
    ]
    raised = {code for path in _python_files() for code in _CODES.findall(path.read_text())}
    codes = {item.code for item in classes} | raised

    assert sorted(code for code in codes if f"`{code}`" not in text) == []


def test_the_committed_schema_is_that_of_the_code() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)

    assert yaml.safe_load((ROOT / "docs/api.yaml").read_text()) == yaml.safe_load(
        OpenApiYamlRenderer().render(schema, renderer_context={})
    ), "run `make schema` and commit docs/api.yaml"
