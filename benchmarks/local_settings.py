"""What benchmarks of local models have in common: threads, the GPU, and one of several processes.

``--share 2/8`` asks every eighth question, from the second on. Eight processes that write to the
same ``--results`` keep a GPU busy; the same command without ``--share`` prints the whole."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypedDict, TypeVar

Item = TypeVar("Item")


class LocalSettings(TypedDict):
    """Options of ``connect``."""

    threads: int
    n_gpu_layers: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=0, help="of the model; 0: all cores")
    parser.add_argument("--gpu", action="store_true", help="all layers on the GPU")


def add_share(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", type=_share, default=(1, 1), metavar="K/N")


def settings(arguments: argparse.Namespace) -> LocalSettings:
    return LocalSettings(threads=arguments.threads, n_gpu_layers=-1 if arguments.gpu else 0)


def own_share(items: Sequence[Item], share: tuple[int, int]) -> Sequence[Item]:
    """Every Nth item, from the Kth on (from 1)."""
    first, of = share
    return items[first - 1 :: of]


def _share(text: str) -> tuple[int, int]:
    first, of = map(int, text.split("/"))
    if not 1 <= first <= of:
        raise argparse.ArgumentTypeError(f"{text}: K of N is between 1 and N")
    return first, of
