"""Models that answer large jobs later."""

from __future__ import annotations

from blendfusion.errors import ModelNotFound
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd
from blendfusion.options import Options

NEEDS = ("http", "prompts")


def _openai_batch(argument: str, options: Options) -> Model:
    from blendfusion.models.services.batch.model import BatchApi, BatchModel
    from blendfusion.models.services.http import server_named

    server = server_named(argument)
    return BatchModel(server.name, BatchApi(server.url, server.key, options), options)


def _batch_file(argument: str, options: Options) -> Model:
    from blendfusion.models.services.batch.model import BatchFiles, BatchModel

    if not argument:
        raise ModelNotFound("'batch-file' names no model", hint="Write 'batch-file:MODEL'.")
    return BatchModel(argument, BatchFiles(argument), options)


BACK_ENDS = {
    "openai-batch": BackEnd(_openai_batch, "'openai-batch:MODEL'", paid=True),
    "batch-file": BackEnd(_batch_file, "'batch-file:MODEL'"),
}
