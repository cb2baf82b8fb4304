"""ARCHITECTURE.md is one page and true."""

import re

from tests.architecture.sources import PRODUCT, ROOT, modules, text_of

ONE_PAGE_LINES = 80


def drawn_packages() -> set[str]:
    """Return the packages in the tree that the page draws: `core/turns` and so on."""
    tree = text_of("ARCHITECTURE.md").split("```")[1]
    packages = set()
    for line in tree.splitlines():
        if found := re.match(r"(?P<indent> *)(?P<name>[a-z_]+)/", line):
            if not found["indent"]:
                top = found["name"]
            else:
                packages.add(f"{top}/{found['name']}")
    return packages


def test_the_tree_names_every_package_that_exists_and_none_that_does_not():
    existing = {"/".join(m.path.split("/")[:2]) for m in modules(*PRODUCT) if m.path.count("/") >= 2}

    assert len(existing) > 15
    assert drawn_packages() == existing


def test_every_file_the_page_names_exists():
    named = set(re.findall(r"\b[\w/]+\.(?:py|md|toml)\b", text_of("ARCHITECTURE.md")))
    known = (
        {"config.toml"} | {path.name for path in ROOT.glob("*")} | {m.path.split("/")[-1] for m in modules(*PRODUCT)}
    )

    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists() and name not in known] == []


def test_it_is_one_page():
    assert 20 < len(text_of("ARCHITECTURE.md").splitlines()) <= ONE_PAGE_LINES
