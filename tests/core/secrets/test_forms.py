import base64
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.secrets.forms import forms_of


def appears(value, text):
    return any(form in text for form in forms_of(value))


VALUES = ["123456789:" + "D" * 35, 'pa"ss\\wo/rd+ =&é', "line one\nline two", 'it\'s "both" 100%']


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "write",
    [
        str,
        repr,
        json.dumps,
        lambda value: json.dumps(value, ensure_ascii=False),
        quote,
        quote_plus,
        lambda value: quote(value, safe=""),
        lambda value: quote(value, safe="").lower() if value.isascii() else quote(value),
        lambda value: urlencode({"token": value}),
        lambda value: base64.b64encode(value.encode()).decode(),
    ],
)
def test_a_value_is_recognised_in_the_forms_that_programs_give_it(value, write):
    if write(value) == write(value).lower() and value != value.lower():
        return
    assert appears(value, write(value))


@given(before=st.binary(max_size=5), value=st.text(min_size=8, max_size=40), behind=st.binary(max_size=5))
def test_a_value_is_recognised_in_base64_whatever_surrounds_it(before, value, behind):
    raw = value.encode("utf-8", "surrogatepass")
    assert appears(value, base64.b64encode(before + raw + behind).decode())
    assert appears(value, base64.urlsafe_b64encode(before + raw + behind).decode())


def test_a_basic_auth_header_is_recognised():
    assert appears("s3cret-pass", base64.b64encode(b"someone:s3cret-pass").decode())
