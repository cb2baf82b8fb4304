"""AGENTS.md states the rules that are in force, with their figures, and no others."""

import re
from dataclasses import dataclass

from tests.architecture import limits
from tests.architecture.sources import ROOT, pyproject, text_of
from tests.mutations.mutants import MUTANTS

PAGE = "AGENTS.md"
CODE = re.compile(r"`([^`\n]+)`")
RUFF_CODE = re.compile(r"[A-Z]{1,4}\d{3,4}")
PROGRAMS = {"ruff format --check", "ruff check", "lint-imports", "mypy", "pytest"}


@dataclass(frozen=True)
class Row:
    """One row of the table of rules."""

    rule: str
    tools: tuple[str, ...]
    why: str


def rows() -> list[Row]:
    lines = [line for line in text_of(PAGE).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["rule", "checked by", "why"]
    return [Row(rule=rule, tools=tuple(CODE.findall(tools)), why=why) for rule, tools, why in cells[2:]]


def rules_of(tool: str) -> list[str]:
    return [row.rule for row in rows() if tool in row.tools]


def has_rule(tool: str, *words: str) -> bool:
    """Whether one rule of a tool says all of these words."""
    return any(all(word in rule for word in words) for rule in rules_of(tool))


def make_targets() -> dict[str, str]:
    """Return the recipes of the Makefile by target."""
    return dict(re.findall(r"^([a-z]+):.*\n((?:\t.*\n?)*)", text_of("Makefile"), flags=re.MULTILINE))


def ci_targets() -> set[str]:
    return set(re.findall(r"^make (\w+)", text_of(".ci/run"), flags=re.MULTILINE))


def gate_programs() -> set[str]:
    """Return the programs that `make check` and `make test` run, without their switches that change nothing."""
    recipes = make_targets()
    lines = (recipes["check"] + recipes["test"]).splitlines()
    commands = [re.sub(r"^\t@?\$\(BIN\)/(python -m )?", "", line) for line in lines]
    return {re.sub(r"( \.| --no-cache| \$\(PYTEST_ARGS\))+$", "", command) for command in commands if command}


def ignored_ruff_rules() -> dict[str, bool]:
    """Return each ignored code, and whether its reason stands beside or, for a pair, behind it."""
    block = text_of("pyproject.toml").partition("\nignore = [\n")[2].partition("\n]")[0]
    return {code: "#" in line for line in block.splitlines() for code in RUFF_CODE.findall(line.partition("#")[0])}


def test_every_rule_has_a_tool_and_a_reason():
    assert len(rows()) > 25
    assert [row.rule for row in rows() if not row.tools or len(row.why) < 20] == []


def test_every_tool_that_is_named_exists_and_is_run_by_ci():
    tools = {tool for row in rows() for tool in row.tools}
    files = {tool for tool in tools if tool.startswith("tests/")}
    targets = {tool.removeprefix("make ") for tool in tools if tool.startswith("make ")}

    assert [path for path in sorted(files) if not (ROOT / path).is_file()] == []
    assert targets <= ci_targets()
    assert tools - files - {f"make {target}" for target in targets} <= PROGRAMS


def test_every_step_of_ci_is_on_the_page():
    assert ci_targets() == {"setup", "check", "test"}
    assert ci_targets() <= make_targets().keys()
    assert [target for target in ci_targets() if f"make {target}" not in text_of(PAGE)] == []
    assert gate_programs() == PROGRAMS
    assert [program for program in PROGRAMS if not rules_of(program)] == []


def test_every_make_target_that_is_named_exists():
    named = set(re.findall(r"\bmake ([a-z]+)", text_of(PAGE)))

    assert len(named) > 3
    assert named <= make_targets().keys()


def test_every_file_of_architecture_tests_has_its_rule():
    files = {f"tests/architecture/{path.name}" for path in (ROOT / "tests" / "architecture").glob("test_*.py")}
    named = {tool for row in rows() for tool in row.tools if tool.startswith("tests/architecture/")}

    assert len(files) > 10
    assert files == named


def test_the_import_rules_are_those_of_the_configuration_by_name():
    contracts = [contract["name"] for contract in pyproject()["tool"]["importlinter"]["contracts"]]

    assert len(contracts) > 5
    assert sorted(rules_of("lint-imports")) == sorted(contracts)


def test_the_ruff_figures_are_those_of_the_configuration():
    lint = pyproject()["tool"]["ruff"]["lint"]

    assert lint["select"] == ["ALL"]
    assert has_rule("ruff check", "Every ruff rule (`ALL`)")
    assert has_rule("ruff check", f"Complexity of a function at most {lint['mccabe']['max-complexity']}")
    pylint = lint["pylint"]
    assert has_rule("ruff check", f"{pylint['max-statements']} statements and {pylint['max-args']} arguments")
    assert has_rule("ruff format --check", f"{pyproject()['tool']['ruff']['line-length']} characters")
    assert len(rules_of("ruff check")) == 3


def test_the_ruff_rules_that_are_off_are_the_configured_ones_each_with_a_reason_there():
    ignored = ignored_ruff_rules()
    listed = text_of(PAGE).partition("Ruff rules that are switched off")[2].partition("\n\n")[0]

    assert ignored.keys() == set(pyproject()["tool"]["ruff"]["lint"]["ignore"])
    assert [code for code, has_reason in ignored.items() if not has_reason] == []
    assert RUFF_CODE.findall(listed) == sorted(ignored)


def test_the_type_checks_are_those_of_the_configuration():
    mypy = pyproject()["tool"]["mypy"]
    switches = ("warn_unreachable", *mypy["enable_error_code"])

    assert mypy["strict"] is mypy["warn_unreachable"] is True
    assert has_rule("mypy", "strict", *(f"`{switch}`" for switch in switches))


def test_the_rules_for_running_tests_are_those_of_the_configuration():
    options = pyproject()["tool"]["pytest"]["ini_options"]

    assert options["filterwarnings"] == ["error"]
    assert "--strict-markers" in options["addopts"]
    assert has_rule("pytest", '`filterwarnings = ["error"]`', "`--strict-markers`")


def test_the_python_and_coverage_floors_are_those_of_the_configuration():
    (floor,) = re.findall(r"--cov-fail-under=(\d+)", text_of(".ci/run"))

    assert has_rule("make test", f"at least {floor} %", f"`--cov-fail-under={floor}`")
    assert pyproject()["tool"]["coverage"]["run"]["branch"] is True
    assert has_rule("make setup", f'`requires-python = "{pyproject()["project"]["requires-python"]}"`')
    assert "--require-hashes" in make_targets()["setup"] + text_of("Makefile")


def test_the_limits_are_those_that_the_tests_hold():
    sizes = (
        f"{limits.FILE_LINES} lines, of tests {limits.TEST_FILE_LINES}; functions of at most {limits.FUNCTION_LINES}"
    )
    counts = [f"{number} `{kind}`" for kind, number in limits.SUPPRESSIONS.items()]

    assert has_rule("tests/architecture/test_sizes.py", sizes)
    assert has_rule("tests/architecture/test_suppressions.py", *counts)
    assert has_rule("tests/architecture/test_broad_excepts.py", *limits.BROAD_EXCEPTS.values())
    assert has_rule("tests/architecture/test_environment.py", *(f"`{path}`" for path in limits.ENVIRONMENT_READERS))
    assert has_rule("tests/architecture/test_module_shape.py", *(f"`{name}`" for name in limits.FORBIDDEN_MODULE_NAMES))


def test_the_number_of_mutants_is_stated():
    assert has_rule("tests/mutations/test_mutants.py", f"{len(MUTANTS)} named bugs")


def test_every_path_the_page_names_exists():
    named = {
        code for code in CODE.findall(text_of(PAGE)) if re.fullmatch(r"[\w./-]+/[\w./-]*|[\w-]+\.(md|toml|lock)", code)
    }

    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists() and path != "invariants/"] == []
