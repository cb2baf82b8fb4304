"""The import rules are in force: they exist, they see the code, and nothing goes round them."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import PRODUCT, ROOT, Module, modules, pyproject

LITELLM = "core/models/litellm_client.py"


def contracts() -> dict[str, dict]:
    return {contract["name"]: contract for contract in pyproject()["tool"]["importlinter"]["contracts"]}


def names_litellm_to_import(module: Module) -> bool:
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names) if any(name.name.split(".")[0] == "litellm" for name in names):
                return True
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] == "litellm":
                return True
            case ast.Call(func=ast.Name(id=call) | ast.Attribute(attr=call), args=[ast.Constant(value=str(name)), *_]):
                if call in {"import_module", "__import__"} and name.split(".")[0] == "litellm":
                    return True
    return False


def test_the_import_rules_hold_and_see_all_of_the_code():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    analysed = re.search(r"Analyzed (\d+) files", done.stdout)
    assert int(analysed[1]) >= len(modules(*PRODUCT)) > 200
    assert f"Contracts: {len(contracts())} kept, 0 broken." in done.stdout


def test_every_package_of_core_has_its_layer():
    layered = contracts()["core is layered, siblings are strangers"]

    assert layered["exhaustive"] is True
    assert layered["containers"] == ["core"]


def test_channels_are_kept_from_every_package_of_core_but_the_contracts():
    listed = set(contracts()["channels see the contracts and no more of core"]["forbidden_modules"])
    packages = {"core." + m.path.split("/")[1] for m in modules("core") if m.path.count("/") >= 2}

    assert listed == packages - {"core.contracts"}


def test_each_sdk_has_one_adapter():
    assert contracts()["litellm is imported by its adapter alone"]["forbidden_modules"] == ["litellm"]
    sdks = contracts()["the SDKs of platforms are imported by their adapters alone"]["forbidden_modules"]
    assert {"telegram", "slack_sdk", "slack_bolt", "discord"} <= set(sdks)


def test_every_platform_is_in_the_rule_that_keeps_platforms_apart():
    platforms = {"channels." + m.path.split("/")[1] for m in modules("channels") if m.path.count("/") >= 2}

    assert len(platforms) >= 3
    assert set(contracts()["platforms are strangers to each other"]["modules"]) == platforms


def test_litellm_is_loaded_by_name_in_its_adapter_alone():
    """It is imported late, by name, which no import rule can see."""
    assert [module.path for module in modules(*PRODUCT) if names_litellm_to_import(module)] == [LITELLM]
