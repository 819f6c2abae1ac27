"""Codes of the fleet as sentences, in the reader's language."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise

# What is wrong with a server; the parameters stand in the code's reason.
SERVER_WORDS: dict[str, Text] = {
    "access_refused": _("The server closes this part of its API to us (status {status})."),
    "bad_answer": _("What answers at this address does not speak the dialect of this kind."),
    "bad_status": _("The server answered with status {status}."),
    "broken_off": _("The server broke the connection off in the middle of an answer."),
    "connect_failed": _("Nothing answers at this address. Is the server running?"),
    "key_refused": _("The server refuses our API key (status {status}). Give a valid one."),
    "key_unreadable": _("The kept API key cannot be decrypted any more. Give it again."),
    "needs_restart": _("{hung} loads hang and hold its load threads: restart the server."),
    "not_ready_yet": _("The server is up, but still loading its model."),
    "redirected": _("The address redirects (status {status}), which is not followed."),
    "repository_refused": _("The server does not show us its repository."),
    "timed_out": _("The server did not answer within {seconds} seconds."),
    "too_large": _("The server's answer was larger than {bytes} bytes and was not read."),
}

# How an operation ended.
VERDICT_WORDS: dict[str, Text] = {
    "access_refused": _("The server closes loading and unloading to us."),
    "load_failed": _("The server could not load the model. Its own words:"),
    "load_hangs": _("The load has not ended in {seconds} seconds."),
    "loaded": _("Loaded: {versions}."),
    "not_in_repository": _("The server's repository has no such model."),
    "not_ready": _("The load ended, but the model is not ready, and the server does not say why."),
    "not_ready_itself": _("The server lists the model as ready, the model itself says it is not."),
    "nothing_changed": _("The server accepted the command, but nothing changed."),
    "partly_loaded": _("Only {versions} could be loaded. The server's own words:"),
    "poll_failed": _(
        "The server could not read the model's folder or config.pbtxt; its log says why."
    ),
    "read_only": _("The server does not let us load: start it with --model-control-mode=explicit."),
    "ready_already": _("Was ready already: {versions}."),
    "reloaded": _("Reloaded: {versions}."),
    "server_disabled": _("The server was disabled meanwhile."),
    "server_needs_restart": _(
        "{hung} loads hang on this server; no other can begin before it is restarted."
    ),
    "server_unreachable": _("The server could not be reached in time."),
    "unload_failed": _("The server refused to unload the model. Its own words:"),
    "unload_hangs": _("The unload has not ended in {seconds} seconds: requests are still running."),
    "unloaded": _("Unloaded."),
    "unloaded_already": _("Was not loaded."),
    "versions_missing": _("{missing} did not become ready, though the config asks for it."),
}


def server_words(reason: Mapping[str, object]) -> str:
    """What is wrong with a server; "" when nothing is."""
    return _sentence(SERVER_WORDS, reason)


def verdict_words(verdict: Mapping[str, object]) -> str:
    """How an operation ended; "" while it is open."""
    return _sentence(VERDICT_WORDS, verdict)


def _sentence(words: Mapping[str, Text], reason: Mapping[str, object]) -> str:
    """The code's sentence with its parameters; a code of another release stays as it is."""
    code = str(reason.get("code", ""))
    if code not in words:
        return code
    parameters = {name: _written(value) for name, value in reason.items() if name != "code"}
    return str(words[code]).format_map(_Lenient(parameters))


def _written(value: object) -> str:
    """Lists are version numbers."""
    if isinstance(value, list):
        return ", ".join(f"v{number}" for number in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


class _Lenient(dict[str, str]):
    """A parameter that is missing is shown as a question mark: old rows keep old parameters."""

    def __missing__(self, name: str) -> str:
        return "?"
