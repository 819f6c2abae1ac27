"""Codes of the fleet as sentences, in the reader's language."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise

# What is wrong with a server; the parameters stand in the code's reason.
SERVER_WORDS: dict[str, Text] = {
    "access_refused": _("It refuses access (status {status}). Check its API key."),
    "bad_answer": _("What answers there is not this kind of server. Check kind and URL."),
    "bad_status": _("It answers with status {status}. Check kind and URL."),
    "broken_off": _("It broke the connection off in the middle of an answer."),
    "connect_failed": _("Nothing answers at this address. Is the server running?"),
    "key_refused": _("It refuses our API key (status {status}). Give a valid one."),
    "key_unreadable": _("The kept API key cannot be decrypted any more. Give it again."),
    "needs_restart": _("{hung} loads hang and hold its load threads: restart the server."),
    "not_ready_yet": _("It is up, but still loading its model."),
    "redirected": _("The address redirects (status {status}), which is not followed."),
    "repository_refused": _("It does not show us its model repository: this API is restricted."),
    "timed_out": _("It did not answer within {seconds} seconds."),
    "too_large": _("Its answer was larger than {bytes} bytes and was not read."),
}

# How an operation ended, and what to do about it. The server's own words are shown beside.
VERDICT_WORDS: dict[str, Text] = {
    "access_refused": _(
        "The server closes loading and unloading to us. Check its API key and restricted APIs."
    ),
    "load_failed": _("The server could not load the model."),
    "load_hangs": _(
        "Still loading after {seconds} seconds, so it is taken for hung. A version folder without "
        "its model file does this; the server keeps a thread on it until it is restarted."
    ),
    "loaded": _("Loaded: {versions}."),
    "not_in_repository": _(
        "The server's repository has no folder of this name. Copy the model there first."
    ),
    "not_ready": _(
        "The load ended, but the model is not ready, and the server does not say why. Somebody "
        "else may have unloaded it."
    ),
    "not_ready_itself": _(
        "The server lists {versions} as ready, the model itself says it is not. Reload it."
    ),
    "nothing_changed": _("The server accepted the command, but the model is still loaded."),
    "partly_loaded": _("Only {versions} answers; another version could not be loaded."),
    "poll_failed": _(
        "The server could not read the model's folder, and does not say why. Check that "
        "config.pbtxt has no syntax error and no unknown field, that its name is the folder's "
        "name, and that all files are there and readable. The server's log has the cause."
    ),
    "read_only": _("The server does not let us load: start it with --model-control-mode=explicit."),
    "ready_already": _(
        "Was ready already: {versions}. Nothing was sent; reload it to read its folder again."
    ),
    "reloaded": _("Unloaded and loaded again: {versions}."),
    "server_disabled": _("The server was disabled meanwhile."),
    "server_needs_restart": _(
        "{hung} loads hang on this server; no other can begin before it is restarted."
    ),
    "server_unreachable": _("The server could not be reached in time. {cause}"),
    "unload_failed": _("The server refused to unload the model."),
    "unload_hangs": _(
        "Still unloading after {seconds} seconds: a request does not end, or the model's process "
        "has died. It may be loaded again; the old copy keeps its memory meanwhile."
    ),
    "unloaded": _("Unloaded."),
    "unloaded_already": _("Was not loaded; nothing was sent."),
    "versions_missing": _(
        "{missing} did not become ready, though the config asks for it; {ready} answers. Copy the "
        "missing folder, or change version_policy."
    ),
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
    parameters = {name: _written(name, value) for name, value in reason.items() if name != "code"}
    return str(words[code]).format_map(_Lenient(parameters))


def _written(name: str, value: object) -> str:
    """Lists are version numbers; a cause is the code of what is wrong with the server."""
    if name == "cause":
        return server_words({"code": value})
    if isinstance(value, list):
        return ", ".join(f"v{number}" for number in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


class _Lenient(dict[str, str]):
    """A parameter that is missing is shown as a question mark: old rows keep old parameters."""

    def __missing__(self, name: str) -> str:
        return "?"
