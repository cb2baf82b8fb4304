"""What is installed is what was locked: exact versions, each with its hashes."""

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from core.models.local_whisper import EXTRA
from tests.architecture.sources import pyproject, text_of

BAD_LITELLM = ("1.82.7", "1.82.8", "1.107.0", "1.107.4")


def locked() -> dict[str, tuple[str, list[str]]]:
    """Return version and hashes of every package of the lock; a package may stand there once a platform."""
    packages: dict[str, tuple[str, list[str]]] = {}
    text = re.sub(r"^\s*#.*$", "", text_of("requirements.lock"), flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        requirement, *hashes = re.split(r"\s+--hash=", line.strip())
        parsed = Requirement(requirement)
        (specifier,) = parsed.specifier
        assert specifier.operator == "==", line
        packages[canonicalize_name(parsed.name)] = (specifier.version, [value.strip() for value in hashes])
    return packages


def wanted() -> dict[str, Requirement]:
    project = pyproject()
    lines = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    return {canonicalize_name(parsed.name): parsed for parsed in map(Requirement, lines)}


def test_every_locked_package_has_hashes():
    packages = locked()

    assert len(packages) > 60
    assert [name for name, (_, hashes) in packages.items() if not hashes] == []
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for _, hashes in packages.values() for value in hashes)


def test_everything_the_project_asks_for_is_locked_at_a_version_it_allows():
    packages = locked()

    assert [name for name in wanted() if name not in packages] == []
    assert [name for name, asked in wanted().items() if not asked.specifier.contains(packages[name][0])] == []


def test_the_extra_that_people_are_told_to_install_is_there():
    extras = pyproject()["project"]["optional-dependencies"]

    assert [Requirement(line).name for line in extras[EXTRA]] == ["faster-whisper"]


def test_litellm_is_pinned_exactly_and_its_bad_releases_are_excluded():
    asked = wanted()["litellm"]
    (pin,) = (specifier for specifier in asked.specifier if specifier.operator == "==")
    exclusions = [specifier for specifier in asked.specifier if specifier.operator == "!="]

    assert locked()["litellm"][0] == pin.version
    assert [bad for bad in BAD_LITELLM if all(specifier.contains(bad) for specifier in exclusions)] == []


def test_the_lock_takes_packages_from_wherever_the_machine_is_set_up_to():
    assert "://" not in text_of("requirements.lock")


def test_the_set_up_installs_nothing_that_is_not_in_the_lock():
    recipe = text_of("Makefile")
    installs = [line for line in recipe.splitlines() if "pip install" in line]

    assert len(installs) == 2
    assert all("--no-deps" in line for line in installs)
    assert "--require-hashes" in installs[0]
