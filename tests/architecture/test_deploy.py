"""What is under `deploy/` fits the program: its users, its signals, its times, its files, its commands."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from datetime import timedelta
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from bot.app import DRAIN_PATIENCE, FLUSH_PATIENCE
from bot.cli.main import build_parser
from bot.config.load import CONFIG_VARIABLE, load_settings
from bot.console.health import health_routes
from core.turns.outcomes import EXIT_USAGE
from deploy.spare_packages import spare_packages
from tests.architecture.sources import ROOT, pyproject, text_of

UNIT, DOCKERFILE, COMPOSE, CONTAINER = "lodger.service", "Dockerfile", "compose.yaml", "container.toml"
PROGRAM = "lodger"
STOPPING = DRAIN_PATIENCE + FLUSH_PATIENCE
LEFT_OFF = {
    "RestrictNamespaces": "no",
    "ProtectHostname": "no",
    "ProtectKernelTunables": "no",
    "ProtectKernelLogs": "no",
    "ProtectProc": "default",
    "ProcSubset": "all",
    "MemoryDenyWriteExecute": "no",
}
"""What would keep bubblewrap, or what commands run, from working."""


def unit() -> dict[str, dict[str, str]]:
    """Return the unit's sections; no key may stand twice."""
    sections: dict[str, dict[str, str]] = {}
    for line in text_of(f"deploy/{UNIT}").splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = sections.setdefault(found[1], {})
        elif line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals, line
            assert key not in section, line
            section[key] = value
    return sections


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with their arguments, in order."""
    lines = [line for line in text_of(f"deploy/{DOCKERFILE}").splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in joined)]


def all_of(instruction: str) -> list[str]:
    return [arguments for word, arguments in instructions() if word == instruction]


def last_of(instruction: str) -> str:
    return all_of(instruction)[-1]


def service() -> dict:
    (only,) = yaml.safe_load(text_of(f"deploy/{COMPOSE}"))["services"].values()
    return only


def container_settings():
    return load_settings(ROOT / "deploy" / CONTAINER, environ={"HOME": "/home/lodger"})


def seconds(text: str) -> timedelta:
    return timedelta(seconds=int(text.removesuffix("s")))


def is_command(words: list[str]) -> bool:
    """Whether the program takes these words; if not, the parser ends the test."""
    return bool(build_parser().parse_args(words).command)


def test_the_service_runs_the_program_as_an_ordinary_user():
    found = unit()["Service"]
    program, *words = shlex.split(found["ExecStart"])

    assert Path(program).name == PROGRAM
    assert PROGRAM in pyproject()["project"]["scripts"]
    assert is_command(words)
    assert found["User"] not in {"", "root", "0"}
    assert (found["NoNewPrivileges"], found["CapabilityBoundingSet"]) == ("yes", "")
    assert found["ProtectSystem"] == "strict"
    assert found["WorkingDirectory"] == f"/var/lib/{found['StateDirectory']}"


def test_the_service_is_stopped_reloaded_and_started_again_as_the_host_expects():
    found = unit()["Service"]

    assert found["Type"] == "exec", "the host does not tell systemd when it is ready"
    assert seconds(found["TimeoutStopSec"]) >= STOPPING
    assert (found["KillSignal"], found["KillMode"]) == ("SIGTERM", "mixed")
    assert found["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert found["Restart"] == "on-failure"
    assert int(found["RestartPreventExitStatus"]) == EXIT_USAGE
    assert int(found["RestartSec"]) < int(found["RestartMaxDelaySec"])
    assert unit()["Unit"]["StartLimitIntervalSec"] == "0"


def test_the_service_leaves_the_sandbox_its_tools_and_says_why():
    found, text = unit()["Service"], text_of(f"deploy/{UNIT}")

    assert {key: found[key] for key in LEFT_OFF} == LEFT_OFF
    assert "SystemCallFilter" not in found
    assert {"AF_UNIX", "AF_NETLINK"} <= set(found["RestrictAddressFamilies"].split())
    comments = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    assert [key for key in (*LEFT_OFF, "SystemCallFilter") if key not in comments] == []


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_understands_the_service(tmp_path):
    """Older ones know no steps between starts, and say so."""
    runnable = text_of(f"deploy/{UNIT}").replace(unit()["Service"]["ExecStart"].split()[0], sys.executable)
    (tmp_path / UNIT).write_text(runnable)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / UNIT], capture_output=True, text=True, timeout=60, check=False
    )
    told = [line for line in done.stderr.splitlines() if UNIT in line]
    assert done.returncode == 0, done.stderr
    assert [line for line in told if "RestartSteps" not in line and "RestartMaxDelaySec" not in line] == []


def test_the_image_is_built_from_what_is_locked_on_the_oldest_python_that_is_allowed():
    oldest = pyproject()["project"]["requires-python"].removeprefix(">=")
    runs = " ".join(all_of("RUN"))

    assert [base.split()[0] for base in all_of("FROM")] == [f"python:{oldest}-slim"] * 2
    assert "--require-hashes --no-deps --requirement requirements.lock" in runs
    assert {"bubblewrap", "git"} <= set(runs.split())


def test_what_the_image_copies_is_there_and_let_in():
    let_in = {line.removeprefix("!") for line in text_of(f"deploy/{DOCKERFILE}.dockerignore").splitlines()}
    copied = {source for arguments in all_of("COPY") if "--from=" not in arguments for source in arguments.split()[:-1]}

    assert {"bot", "channels", "core", "requirements.lock"} <= copied
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert copied <= let_in
    assert "*" in let_in, "everything else stays outside"


def test_the_image_runs_the_program_as_an_ordinary_user_and_asks_for_its_health():
    order = [word for word, _ in instructions()]
    words = [*json.loads(last_of("ENTRYPOINT")), *json.loads(last_of("CMD"))]
    settings = container_settings()

    assert words[0] in pyproject()["project"]["scripts"]
    assert is_command(words[1:])
    assert last_of("USER") not in {"root", "0"}
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert last_of("STOPSIGNAL") == "SIGTERM"
    assert f"127.0.0.1:{settings.console.listen.port}/healthz" in last_of("HEALTHCHECK")
    assert last_of("EXPOSE") == str(settings.console.listen.port)
    assert "/healthz" in {route.path for route in health_routes(None)}
    assert f"{CONFIG_VARIABLE}=/etc/lodger/config.toml" in last_of("ENV")
    assert f"COPY deploy/{CONTAINER} /etc/lodger/config.toml" in {" ".join(each) for each in instructions()}


def test_the_containers_configuration_loads_and_keeps_its_state_in_volumes():
    settings = container_settings()
    folders = {str(settings.host.data_dir), *(str(agent.workspace) for agent in settings.agents.values())}

    assert settings.warnings == ()
    assert set(json.loads(last_of("VOLUME"))) == folders
    mounted = dict(volume.split(":")[:2] for volume in service()["volumes"])
    assert {target for source, target in mounted.items() if not source.startswith(".")} == folders
    assert mounted[f"./{CONTAINER}"] == "/etc/lodger/config.toml"


def test_compose_stops_the_host_in_time_and_gives_it_nothing_it_does_not_need():
    found = service()
    (user_id,) = re.findall(r"useradd --uid (\d+)", " ".join(all_of("RUN")))
    (port,) = found["ports"]

    assert seconds(found["stop_grace_period"]) >= STOPPING
    assert found["stop_signal"] == "SIGTERM"
    assert found["user"].split(":")[0] == user_id
    assert found["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in found["security_opt"]
    assert not found.keys() & {"privileged", "network_mode", "pid", "devices"}
    assert port == f"127.0.0.1:{last_of('EXPOSE')}:{last_of('EXPOSE')}"
    assert (ROOT / "deploy" / found["build"]["context"] / found["build"]["dockerfile"]).is_file()


def test_compose_holds_secrets_as_files_and_no_service_that_cannot_work():
    whole = yaml.safe_load(text_of(f"deploy/{COMPOSE}"))
    referred = set(re.findall(r"/run/secrets/(\w+)", text_of(f"deploy/{CONTAINER}")))

    assert set(whole["services"]) == {PROGRAM}
    assert "environment" not in service()
    assert set(service()["secrets"]) == set(whole["secrets"]) == referred
    assert {Path(secret["file"]).parent for secret in whole["secrets"].values()} == {Path("secrets")}
    assert text_of("deploy/.gitignore").split() == ["/secrets/"]
    assert "PostgreSQL" in text_of(f"deploy/{COMPOSE}")


def test_only_what_developers_need_is_spared_in_the_image():
    needed = {re.split(r"[^\w.-]", line)[0].lower() for line in metadata.requires(PROGRAM)}
    spare = spare_packages()

    assert {"pytest", "mypy", "ruff", "playwright"} <= spare
    assert spare & {*needed, PROGRAM, "tiktoken", "aiohttp", "httpcore"} == set()


def test_the_guide_names_the_files_there_are_and_the_targets_of_make():
    text = text_of("docs/operation.md")
    files = set(re.findall(r"\bdeploy/[\w.]+\b", text)) - {"deploy/secrets"}
    targets = set(re.findall(r"\bmake (?:-C \S+ )?([a-z]+)\b", text))

    assert {f"deploy/{name}" for name in (UNIT, DOCKERFILE, COMPOSE, CONTAINER)} <= files
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert "setup" in targets
    assert targets <= set(re.findall(r"^([a-z]+):", text_of("Makefile"), flags=re.MULTILINE))
