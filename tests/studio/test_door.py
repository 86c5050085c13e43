"""Who comes in, what is refused, and what no answer says (cases L1 to L16)."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from gibbous.core.errors import ResourceLimit
from tests.studio.conftest import HOST, ORIGIN, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:8643",
        "localhost:8642",
        "[::1]:8642",
        "127.0.0.1.:8642",
        "",
    ],
)
def test_l1_a_foreign_host_is_not_answered(visitor: Visitor, host: str) -> None:
    assert visitor.get("data", headers={"host": host}).status_code == 400
    assert (
        visitor.client.post("/data/demo", headers={"host": host, "origin": ORIGIN}).status_code
        == 400
    )


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:8643", None])
@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_l2_a_foreign_origin_changes_nothing(
    visitor: Visitor, origin: str | None, kind: str
) -> None:
    headers = {"content-type": kind} | ({"origin": origin} if origin else {})

    for path in ("/data/forget", "/upload", "/leave", "/enter", "/run/start"):
        assert visitor.client.post(path, content=b"key=x", headers=headers).status_code == 403


def test_l2_there_is_no_websocket(visitor: Visitor) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), visitor.client.websocket_connect("/data"):
        pass


def test_l3_without_the_token_nothing_is_shown(studio: Any) -> None:
    stranger = Visitor(studio, entered=False)
    paths = [screen.name for screen in studio.screens] + ["", "jobs/x", "document/internal"]

    assert {stranger.get(path).status_code for path in paths} == {401}
    assert stranger.send("enter", token="wrong").status_code == 401
    assert stranger.send("enter", token="").status_code == 401
    assert stranger.send("data/demo", key="x").status_code == 401


def test_l3_the_token_opens_once_and_the_cookie_is_for_this_server_alone(studio: Any) -> None:
    token, visitor = studio.door.token, Visitor(studio, entered=False)
    answer = visitor.send("enter", token=token)
    cookie = answer.headers["set-cookie"].lower()

    assert answer.status_code == 303
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert Visitor(studio, entered=False).send("enter", token=token).status_code == 401
    assert len(token) >= 43  # 256 bits


def test_l3_a_form_of_another_session_is_refused(studio: Any) -> None:
    first, second = Visitor(studio), Visitor(studio)

    assert first.send("data/forget", key=second.key).status_code == 403
    assert first.send("data/forget", key="").status_code == 403


@pytest.mark.slow
def test_l4_get_changes_nothing(described: Any, folder: Path) -> None:
    visitor = Visitor(described)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    actions = [f"{s.name}/{action}" for s in described.screens for action in s.actions]

    for path in [
        *(s.name for s in described.screens),
        *actions,
        "leave",
        "upload",
        "jobs/x/cancel",
    ]:
        visitor.get(path)

    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert all(visitor.get(path).status_code == 405 for path in actions)
    assert described.jobs.all() == []


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/internal",
        "..\\secret",
        "/etc/passwd",
        "internal%00",
        "schema.toml",
    ],
)
def test_l5_documents_have_names_of_ours_alone(visitor: Visitor, name: str) -> None:
    assert visitor.get(f"document/{name}").status_code in (400, 404)
    assert visitor.get(f"static/{name}").status_code in (400, 404)


def test_l5_a_link_in_place_of_a_report_is_not_followed(described: Any, folder: Path) -> None:
    (folder / "secret.html").write_text("secret")
    (folder / "internal").mkdir()
    (folder / "internal" / "report.internal.html").symlink_to(folder / "secret.html")

    assert Visitor(described).get("document/internal").status_code == 404


def upload(visitor: Visitor, content: Any, name: str = "a.csv", **more: str) -> Any:
    headers = {
        "origin": ORIGIN, "content-type": "application/octet-stream",
        "x-studio-key": visitor.key, "x-studio-name": name,
    } | more  # fmt: skip
    return visitor.client.post("/upload", content=content, headers=headers)


@pytest.mark.parametrize("name", ["../../../x.csv", "..%2f..%2fx.csv", "C:\\x.csv", "a\n<b>.csv"])
def test_l5_names_of_uploads_are_made_here(visitor: Visitor, folder: Path, name: str) -> None:
    from urllib.parse import quote

    answer = upload(visitor, b"a\n1\n", quote(name))
    [own] = (folder / ".studio" / "uploads").iterdir()
    [path] = own.iterdir()

    assert answer.text == f"{own.name}/{path.name}"
    assert re.fullmatch(r"[\w-]+\.csv", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(own.stat().st_mode) == stat.S_IMODE(own.parent.stat().st_mode) == 0o700


def test_l6_an_upload_over_the_limit_leaves_nothing(studio: Any, folder: Path) -> None:
    from dataclasses import replace

    visitor = Visitor(replace(studio, upload_bytes=1000))

    said = upload(visitor, b"x" * 1001)
    endless = upload(visitor, iter([b"x" * 400] * 1000))

    assert (said.status_code, endless.status_code) == (413, 413)
    assert list((folder / ".studio" / "uploads").iterdir()) == []


def test_l6_forms_are_small_and_have_no_parts(visitor: Visitor) -> None:
    key = visitor.key
    parts = {"origin": ORIGIN, "content-type": "multipart/form-data; boundary=x"}

    assert visitor.send("data/choose", key=key, path="x" * (2 << 20)).status_code == 413
    assert (
        visitor.client.post("/data/choose", content=b"--x\r\n" * 1000, headers=parts).status_code
        == 415
    )
    assert upload(visitor, b"x", "a.exe").status_code == 422


def test_l6_whoever_sends_slowly_is_not_waited_for(studio: Any) -> None:
    visitor = Visitor(studio, patience=0.05)
    said: list[Any] = []
    headers = [(b"host", HOST.encode()), (b"origin", ORIGIN.encode()),
               (b"content-type", b"application/x-www-form-urlencoded")]  # fmt: skip
    scope = {"type": "http", "method": "POST", "path": "/enter", "raw_path": b"/enter",
             "query_string": b"", "headers": headers, "http_version": "1.1", "scheme": "http"}  # fmt: skip

    async def never() -> Any:
        await asyncio.sleep(60)

    async def hear(message: Any) -> None:
        said.append(message)

    asyncio.run(visitor.app(scope, never, hear))

    assert said[0]["status"] == 408


@pytest.mark.parametrize(
    "number", ["NaN", "1e999", "inf", "0", "-1", "", "1e-999", "1,5", "1" * 60]
)
def test_l7_numbers_that_are_none_are_refused_with_our_code(described: Any, number: str) -> None:
    answer = Visitor(described).do("budget/spend", epsilon=number, delta="1e-9", own="", sets="1")

    assert answer.status_code == 422
    assert re.search(r"GB\d-\w+", answer.text)


def test_l7_json_is_not_read_and_a_name_counts_once(described: Any) -> None:
    visitor = Visitor(described)
    deep = b"[" * 100_000
    twice = f"key={visitor.key}&epsilon=1&epsilon=2".encode()
    form = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}

    json = visitor.client.post(
        "/budget/spend", content=deep, headers=form | {"content-type": "application/json"}
    )

    assert json.status_code == 415
    assert visitor.client.post("/budget/spend", content=twice, headers=form).status_code == 422
    assert (
        visitor.client.post("/budget/spend", content=b"\xff%ff=1", headers=form).status_code == 422
    )


def test_l9_no_page_is_framed_probed_or_kept(described: Any) -> None:
    visitor = Visitor(described)

    for answer in (
        visitor.get("data"),
        visitor.get("static/studio.js"),
        Visitor(described, entered=False).get("data"),
    ):
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "script-src 'self';" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_l12_the_studio_has_no_way_to_listen_elsewhere() -> None:
    from gibbous.cli import main
    from gibbous.studio import server

    assert server.HOST == "127.0.0.1"
    assert main(["studio", "--host", "0.0.0.0"]) == 2


def test_l13_a_port_in_use_is_left_alone() -> None:
    from gibbous.studio.server import _bound

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ResourceLimit, match="in use"):
            _bound(port)
        free = _bound(None)

    assert free.getsockname()[1] != port
    free.close()


def test_l15_an_answer_has_the_number_of_a_fault_and_no_trace(
    studio: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(studio)

    def broken(*_: object) -> None:
        raise RuntimeError("cell value 4711")

    monkeypatch.setattr("gibbous.studio.accounts.table", broken)
    answer = visitor.get("ledger")

    assert answer.status_code == 500
    assert re.search(r"Its number is [0-9a-f]{8}\.", answer.text)
    assert "4711" not in answer.text + capsys.readouterr().err


def test_l16_nothing_is_redirected_elsewhere_and_a_session_ends(studio: Any) -> None:
    visitor = Visitor(studio)

    answer = visitor.get("?next=http://evil.example", headers={"referer": "http://evil.example"})
    left = visitor.do("leave")

    assert answer.headers["location"] == "/data"
    assert left.status_code == 200
    assert visitor.get("data").status_code == 401


def test_the_next_address_is_in_a_private_file_and_not_in_an_argument(tmp_path: Path) -> None:
    from gibbous.studio.server import _renewed

    os.umask(0o022)
    _renewed(tmp_path / "open.html", ORIGIN, "secret-token")

    assert stat.S_IMODE((tmp_path / "open.html").stat().st_mode) == 0o600
    assert f"{ORIGIN}/enter#secret-token" in (tmp_path / "open.html").read_text()
