import asyncio
import logging
import signal
import socket
import stat

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from bot.console.server import CannotListen, serve
from bot.console.shutdown import stopping_of


async def hello(_request):
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", hello)])


def over(path):
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://host")


async def test_the_block_is_served_at_the_address_it_is_given():
    async with serve(APP, listen="127.0.0.1:0") as address, httpx.AsyncClient() as client:
        assert address.startswith("127.0.0.1:")
        assert (await client.get(f"http://{address}/")).text == "hello"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(tuple(address.split(":")), timeout=1)


async def test_a_unix_socket_is_for_its_owner_and_is_gone_afterwards(tmp_path):
    path = tmp_path / "s"
    async with serve(APP, uds=path) as address, over(path) as client:
        assert address == str(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (await client.get("/")).text == "hello"
    assert not path.exists()


async def test_a_socket_that_a_dead_process_left_is_replaced(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with serve(APP, uds=path), over(path) as client:
        assert (await client.get("/")).text == "hello"


async def test_a_socket_where_somebody_answers_is_left_alone(tmp_path):
    path = tmp_path / "s"
    async with serve(APP, uds=path), over(path) as client:
        with pytest.raises(CannotListen, match="another host answers"):
            async with serve(APP, uds=path):
                pass
        assert (await client.get("/")).text == "hello"


@pytest.mark.parametrize("name", ["x" * 200, "no/such/folder/s"])
async def test_a_path_that_cannot_be_a_socket_is_refused_with_the_fix(tmp_path, name):
    with pytest.raises(CannotListen, match="data_dir"):
        async with serve(APP, uds=tmp_path / name):
            pass


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(CannotListen):
        async with serve(APP, uds=path):
            pass
    assert path.read_text() == "mine"


async def test_a_taken_port_is_named_with_the_fix():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen) as caught:
            async with serve(APP, listen=address):
                pass
    assert caught.value.address == address
    assert str(caught.value) == (
        f"cannot listen on {address}: another program uses it. "
        "Stop the other program, or set another port as [console] listen."
    )


@pytest.mark.parametrize("listen", ["", "8787", ":8787", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "192.0.2.1:0"])
async def test_what_is_no_address_of_this_machine_is_refused(listen):
    with pytest.raises(CannotListen, match=r"127\.0\.0\.1:8787"):
        async with serve(APP, listen=listen):
            pass


async def test_an_address_must_be_given_in_one_way(tmp_path):
    for options in ({}, {"listen": "127.0.0.1:0", "uds": tmp_path / "s"}):
        with pytest.raises(ValueError, match="either"):
            async with serve(APP, **options):
                pass


async def test_errors_of_the_block_come_out_as_they_are(tmp_path):
    with pytest.raises(KeyError):
        async with serve(APP, uds=tmp_path / "s"):
            raise KeyError("x")


async def test_signals_and_logging_stay_as_they_are(tmp_path, caplog):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    root = list(logging.getLogger().handlers)
    with caplog.at_level(logging.INFO):
        async with serve(APP, uds=tmp_path / "s"), over(tmp_path / "s") as client:
            assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
            await client.get("/?token=not-for-the-log")
    assert list(logging.getLogger().handlers) == root
    assert logging.getLogger("uvicorn").handlers == []
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]
    assert lines
    assert not any("GET" in line or "not-for-the-log" in line for line in lines)


async def test_a_request_that_is_under_way_is_finished_before_the_server_ends(tmp_path):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request):
        begun.set()
        await stopping_of(request.scope).wait()
        await go_on.wait()
        return PlainTextResponse("finished")

    app = Starlette(routes=[Route("/", slow)])
    async with over(tmp_path / "s") as client:
        async with serve(app, uds=tmp_path / "s"):
            asking = asyncio.create_task(client.get("/"))
            await begun.wait()
            asyncio.get_running_loop().call_soon(go_on.set)
        assert (await asking).text == "finished"
