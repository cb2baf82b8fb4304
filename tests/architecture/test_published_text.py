"""What is published names no machine it was made on and no package registry."""

from pathlib import Path

from tests.architecture.sources import ROOT

DIRECTORIES = (".ci", "benchmarks", "bot", "channels", "core", "deploy", "docs", "tests")
TEXT_SUFFIXES = {
    "", ".cfg", ".css", ".html", ".ini", ".js", ".json", ".lock", ".mako", ".md", ".py", ".service", ".sh", ".svg",
    ".toml", ".txt", ".yaml", ".yml",
}  # fmt: skip
OTHERS = {"requirements.lock"}
# Put together here, so that this file does not hold them either.
FORBIDDEN = tuple(
    "".join(parts)
    for parts in (
        ("/wo", "rk/"),
        ("/tmp/", "bash_jobs"),
        ("files.python", "hosted"),
        ("py", "pi.org"),
        ("registry.", "npmjs"),
        ("proxy.", "golang.org"),
        ("index", "-url ="),
        ("index", "-url http"),
    )
)


def published_files() -> list[Path]:
    inside = (path for directory in DIRECTORIES for path in (ROOT / directory).rglob("*"))
    at_the_top = (path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name not in OTHERS)
    files = (path for path in (*at_the_top, *inside) if path.is_file() and path.suffix in TEXT_SUFFIXES)
    return [path for path in files if "__pycache__" not in path.parts]


def words_of_a_machine(text: str) -> list[str]:
    return [word for word in FORBIDDEN if word in text]


def test_no_file_names_a_machine_or_a_registry():
    files = published_files()
    found = {path: words_of_a_machine(path.read_text(encoding="utf-8")) for path in files}

    assert len(files) > 300
    assert {path.relative_to(ROOT).as_posix(): words for path, words in found.items() if words} == {}


def test_a_path_of_a_machine_would_be_seen():
    assert words_of_a_machine("see /wo" + "rk/main") == ["/wo" + "rk/"]
