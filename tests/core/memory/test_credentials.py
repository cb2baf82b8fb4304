"""Token shapes are found; ordinary text is left alone (C47)."""

import pytest

from core.memory.credentials import PLACEHOLDER, scrub

KEYS = [
    "ghp_" + "A" * 36,
    "github_pat_" + "a1" * 30,
    "xoxb-" + "1" * 12 + "-" + "a" * 24,
    "xapp-1-" + "A1" * 12,
    "sk-ant-" + "b" * 40,
    "sk-" + "a1B2" * 12,
    "AKIA" + "C" * 16,
    "123456789:" + "D" * 35,
    "AIza" + "e" * 35,
    "M" + "a" * 24 + "." + "b" * 6 + "." + "c" * 30,
    "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20,
    "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE\n" * 20 + "-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n" + "MIIE\n" * 3,
]


@pytest.mark.parametrize("key", KEYS)
def test_a_credential_is_replaced_and_the_text_around_it_stays(key):
    assert scrub(f"remember my key is {key}") == f"remember my key is {PLACEHOLDER}"


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "sk-learn and scikit-learn, task-oriented-" + "x" * 30,
        "aGVsbG8gd29ybGQhIQ==",
        "meet at 10:30, port 127.0.0.1:8080",
        "a public key: -----BEGIN PUBLIC KEY-----",
    ],
)
def test_ordinary_text_is_not_touched(text):
    assert scrub(text) == text
