"""Codes of what went how, as sentences in the reader's language."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.fleet.models import Operation

_VERDICTS: dict[str, Promise] = {
    "loaded": gettext_lazy("Loaded: version %(versions)s answers."),
    "reloaded": gettext_lazy("Unloaded and loaded again: version %(versions)s answers."),
    "ready_already": gettext_lazy(
        "It was loaded already (version %(versions)s); nothing was sent. Reload it to read the "
        "repository again."
    ),
    "unloaded": gettext_lazy("Unloaded; requests that had begun were answered."),
    "unloaded_already": gettext_lazy("It was not loaded; nothing was sent."),
    "load_failed": gettext_lazy("The server could not load it."),
    "unload_failed": gettext_lazy("The server refused to unload it."),
    "partly_loaded": gettext_lazy(
        "Only version %(versions)s answers; another version could not be loaded."
    ),
    "poll_failed": gettext_lazy(
        "The server could not read the model's folder, and does not say why. Check that "
        "config.pbtxt has no syntax error and no unknown field, that its name is the folder's "
        "name, and that all files are there and readable. The server's log has the cause."
    ),
    "not_in_repository": gettext_lazy(
        "The server's repository has no folder of this name. Copy the model there first."
    ),
    "not_ready": gettext_lazy(
        "The server said yes, but the model is not ready. Somebody else may have unloaded it."
    ),
    "not_ready_itself": gettext_lazy(
        "The index lists version %(versions)s as ready, but the model itself says it is not. "
        "Reload it."
    ),
    "versions_missing": gettext_lazy(
        "The config asks for version %(missing)s, which is not there; version %(ready)s answers. "
        "Copy the missing folder or change version_policy."
    ),
    "nothing_changed": gettext_lazy("The server said yes, but the model is still loaded."),
    "load_hangs": gettext_lazy(
        "Still loading after %(seconds)s s, so it is taken for hung. A version folder without its "
        "model file does this. The server keeps a thread on it until it is restarted."
    ),
    "unload_hangs": gettext_lazy(
        "Still unloading after %(seconds)s s: a request does not end, or the model's process has "
        "died. It may be loaded again; the old copy keeps its memory until the server restarts."
    ),
    "server_needs_restart": gettext_lazy(
        "%(hung)s loads hang on the server, so nothing more is loaded there. Restart it."
    ),
    "server_unreachable": gettext_lazy("The server did not answer: %(cause)s."),
    "server_disabled": gettext_lazy("The server was disabled meanwhile."),
    "read_only": gettext_lazy(
        "The server does not load on demand. Start it with --model-control-mode=explicit."
    ),
    "access_refused": gettext_lazy(
        "The server keeps its control API closed to us. Check its API key and restricted APIs."
    ),
}

_REASONS: dict[str, Promise] = {
    "connect_failed": gettext_lazy("No connection: nothing listens there, or the way is blocked."),
    "timed_out": gettext_lazy("No answer within %(seconds)s s."),
    "broken_off": gettext_lazy("The connection broke off."),
    "redirected": gettext_lazy("It redirects elsewhere, which is not followed. Check the URL."),
    "too_large": gettext_lazy("Its answer is larger than %(bytes)s bytes."),
    "bad_answer": gettext_lazy("Its answer is not of this kind of server. Check kind and URL."),
    "bad_status": gettext_lazy("It answers with status %(status)s. Check kind and URL."),
    "key_refused": gettext_lazy("It refuses the API key (status %(status)s)."),
    "key_unreadable": gettext_lazy(
        "Its API key cannot be decrypted: the encryption key has changed. Enter the key again."
    ),
    "not_ready_yet": gettext_lazy("It is starting, or not ready."),
    "access_refused": gettext_lazy("It refuses access (status %(status)s). Check the API key."),
    "repository_refused": gettext_lazy(
        "It does not show its model repository: this API is restricted there."
    ),
    "needs_restart": gettext_lazy(
        "%(hung)s loads hang, so nothing more is loaded here. Restart the server."
    ),
}


def verdict_words(operation: Operation) -> str:
    """How an operation ended and what to do about it; "" while it is open."""
    verdict = dict(operation.verdict)
    if "cause" in verdict:
        verdict["cause"] = reason_words({"code": verdict["cause"]}).rstrip(".")
    return _words(_VERDICTS, verdict)


def reason_words(reason: Mapping[str, object]) -> str:
    """What is wrong with a server; "" when nothing is."""
    return _words(_REASONS, reason)


def _words(sentences: Mapping[str, Promise], found: Mapping[str, object]) -> str:
    """The sentence of a code; a code or parameter that is not known shows as it is."""
    code = str(found.get("code", ""))
    if not code:
        return ""
    values = _Values({name: _text(value) for name, value in found.items()})
    return str(sentences[code]) % values if code in sentences else code


class _Values(dict[str, str]):
    """Parameters of a sentence; one that is not given shows as a question mark."""

    def __missing__(self, name: str) -> str:
        return "?"


def _text(value: object) -> str:
    if isinstance(value, list):
        return _(" and ").join(map(str, value)) or _("none")
    return str(value)
