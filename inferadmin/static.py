"""How static files are stored: names with a digest of the content, compressed beside them."""

from typing import Any

import brotli
from servestatic.compress import Compressor
from servestatic.storage import CompressedManifestStaticFilesStorage

# The highest, 11, takes twenty times as long for files that are a twelfth smaller.
_BROTLI_QUALITY = 9


class QuickCompressor(Compressor):  # type: ignore[misc]  # the package has no types
    """Compresses well enough in a fraction of the time: every first start waits for it."""

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        """Brotli at a middling quality."""
        return bytes(brotli.compress(data, quality=_BROTLI_QUALITY))


class StaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # no types
    """The product's static storage."""

    def create_compressor(self, **options: Any) -> Compressor:
        """The compressor of one `collectstatic`."""
        return QuickCompressor(**options)
