"""Models and embedders behind servers with OpenAI's protocol, and of Anthropic and Gemini."""

from __future__ import annotations

import os
from typing import NamedTuple

from blendfusion.errors import ModelNotFound
from blendfusion.models.embedders.embedder import Embedder, EmbedderKind
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd
from blendfusion.options import Options

NEEDS = ("prompts", "verbalizer")


def _openai(argument: str, options: Options) -> Model:
    from blendfusion.models.services.http.address import HOSTED_URL, several
    from blendfusion.models.services.http.load_balancer import BalancedModel
    from blendfusion.models.services.http.model import OpenAIModel
    from blendfusion.models.services.http.server_file import ServerFile

    server = server_named(argument, file=True)
    if server.url.startswith("file:"):
        return BalancedModel(server.name, ServerFile(server.url), server.key, options)
    urls = several(server.url)
    if len(urls) > 1:
        return BalancedModel(server.name, urls, server.key, options)
    says_where = server.url == HOSTED_URL and "@" not in argument
    return OpenAIModel(server.name, server.url, server.key, options, says_where=says_where)


def _anthropic(argument: str, options: Options) -> Model:
    return _of_provider("anthropic", argument, options)


def _gemini_api(argument: str, options: Options) -> Model:
    return _of_provider("gemini", argument, options)


def _of_provider(provider: str, argument: str, options: Options) -> Model:
    """A model of an API of its own, at its owner's server unless a URL is named."""
    from blendfusion.models.services.http.address import split_name, with_path
    from blendfusion.models.services.http.api import APIS
    from blendfusion.models.services.http.model import OpenAIModel

    api = APIS[provider]
    name, url = split_name(argument, provider)
    url = with_path(url or os.environ.get(api.url_variable, "").strip() or api.url, api.url)
    keys = [os.environ.get(variable, "").strip() for variable in api.key_variables]
    key = next(filter(None, keys), None)
    if key is None and url == api.url:
        raise ModelNotFound(
            f"'{provider}:{name}' needs a key, and {api.key_variables[0]} is not set",
            hint=f"Set {api.key_variables[0]}, or name a server: '{provider}:{name}@http://HOST:PORT'.",
        )
    return OpenAIModel(name, url, key, options, api=api)


class Server(NamedTuple):
    """A model of a server."""

    name: str
    url: str
    key: str | None


def server_named(argument: str, *, file: bool = False) -> Server:
    """The model, the server and the key of what follows ``openai:``. Raises ModelNotFound.

    ``file``: the URL may be that of a file of servers.

    A name without a server is one of the server that OPENAI_BASE_URL names, else of OpenAI's.
    """
    from blendfusion.models.services.http.address import (
        HOSTED_URL,
        URL_VARIABLE,
        checked_url,
        several,
        split_name,
    )
    from blendfusion.models.services.http.client import KEY_VARIABLE

    name, url = split_name(argument)
    url = url or os.environ.get(URL_VARIABLE, "").strip() or HOSTED_URL
    key = os.environ.get(KEY_VARIABLE)
    if not (file and url.startswith("file:")):
        for one in several(url):
            checked_url(one)
    if not key and url == HOSTED_URL:
        raise ModelNotFound(
            f"'openai:{name}' needs a key for {HOSTED_URL}, and {KEY_VARIABLE} is not set",
            hint=f"Set {KEY_VARIABLE}, or name a server: 'openai:{name}@http://HOST:PORT/v1'.",
        )
    return Server(name, url, key)


def _embedder(argument: str, options: Options) -> Embedder:
    from blendfusion.models.services.http.address import several
    from blendfusion.models.services.http.embedder import OpenAIEmbedder

    server = server_named(argument)
    if several(server.url) != [server.url]:
        raise ModelNotFound(
            f"'openai:{server.name}' names several servers, and an embedder has one",
            hint="Name one URL.",
        )
    return OpenAIEmbedder(*server, options)


_FORMS = "'openai:MODEL@http://HOST:PORT/v1', 'openai:MODEL'"
SERVERS = {
    "openai": BackEnd(_openai, _FORMS, paid=True),
    "anthropic": BackEnd(_anthropic, "'anthropic:MODEL'", paid=True),
    "gemini": BackEnd(_gemini_api, "'gemini:MODEL'", paid=True),
}
EMBEDDERS = {"openai": EmbedderKind(_embedder, _FORMS)}
