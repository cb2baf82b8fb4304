"""Prints the installed packages that Lodger does not need to run: the tools of its developers.

The lock holds both, so that one set of versions is reviewed. An image that only runs removes these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "lodger"


def spare_packages() -> set[str]:
    """Return the names of all installed packages that the project leads to by no requirement."""
    installed = {canonicalize_name(found.metadata["Name"]) for found in metadata.distributions()}
    return installed - _needed(installed)


def _needed(installed: set[str]) -> set[str]:
    """Follow requirements, with their extras, as far as they are installed."""
    needed: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(PROJECT), frozenset[str]())]
    while waiting:
        name, extras = waiting.pop()
        if name in installed and (name, extras) not in needed:
            needed.add((name, extras))
            waiting.extend(_requirements(name, extras))
    return {name for name, _ in needed}


def _requirements(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for requirement in map(Requirement, metadata.requires(name) or ()):
        applies = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in (extras or {""})
        )
        if applies:
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


if __name__ == "__main__":
    sys.stdout.write(" ".join(sorted(spare_packages())) + "\n")
