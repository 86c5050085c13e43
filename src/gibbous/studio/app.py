"""The application: which address shows which screen, and what each form of it does. Start here."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from gibbous.core.errors import GibbousError, speaking_flags
from gibbous.studio import documents, pages, uploads
from gibbous.studio.commands import Command
from gibbous.studio.door import Door
from gibbous.studio.forms import Form, parsed
from gibbous.studio.guard import PATIENCE, Guard, TooLarge, TooSlow, fault
from gibbous.studio.jobs import Jobs
from gibbous.studio.screens import SCREENS, Screen
from gibbous.studio.words import answer, words
from gibbous.studio.workplace import Workplace

FORM_TYPE = "application/x-www-form-urlencoded"
BOARD = ("board", "analyse")


@dataclass(frozen=True, eq=False)
class Studio:
    """What the screens work with.

    Attributes:
        board: only a release is shown, and nothing can be changed.
        upload_bytes: the most that one upload may hold.
        looked: counts of columns that were asked for since the start; never written.
        crossed: the same of pairs of columns.
        marks: fingerprints of files as they were.
        plans: of methods, by what they depend on, and why there is none.
        done: what was last done on a screen without a job, as a command.
    """

    place: Workplace
    jobs: Jobs
    door: Door
    board: bool = False
    upload_bytes: int = uploads.MOST
    looked: dict[str, Any] = field(default_factory=dict)
    crossed: dict[tuple[str, str], Any] = field(default_factory=dict)
    marks: dict[tuple[Any, ...], str] = field(default_factory=dict)
    plans: dict[tuple[Any, ...], tuple[Any, str]] = field(default_factory=dict)
    done: dict[str, Command] = field(default_factory=dict)

    @property
    def screens(self) -> tuple[Screen, ...]:
        """Those that are shown, in order."""
        return tuple(s for s in SCREENS if (s.name in BOARD if self.board else s.name != "board"))


def application(studio: Studio, patience: float = PATIENCE) -> Guard:
    """The whole studio as an ASGI application.

    Args:
        patience: seconds that a browser may take between two pieces of what it sends.
    """
    screens = {screen.name: screen for screen in studio.screens}
    routes = [
        Route("/", partial(_home, studio), methods=["GET"]),
        Route("/enter", partial(_enter, studio), methods=["GET", "POST"]),
        Route("/leave", partial(_leave, studio), methods=["POST"]),
        Route("/static/{name}", pages.static, methods=["GET"]),
        Route("/jobs/{job}", partial(_job, studio), methods=["GET"]),
        Route("/jobs/{job}/cancel", partial(_cancel, studio, "cancel"), methods=["POST"]),
        Route("/jobs/{job}/again", partial(_cancel, studio, "again"), methods=["POST"]),
        Route("/document/{name}", partial(documents.answer, studio), methods=["GET"]),
    ]
    if not studio.board:
        routes.append(Route("/upload", partial(uploads.receive, studio), methods=["POST"]))
    for name, screen in screens.items():
        routes.append(Route(f"/{name}", partial(_show, studio, screen), methods=["GET"]))
        for action in screen.actions:
            act = partial(_act, studio, screen, action)
            routes.append(Route(f"/{name}/{action}", act, methods=["POST"]))
    refusals: dict[Any, Any] = {
        TooSlow: lambda request, error: PlainTextResponse(answer(408), 408),
        TooLarge: lambda request, error: PlainTextResponse(answer(413), 413),
        Exception: lambda request, error: PlainTextResponse(fault(error), 500),
    }
    return Guard(
        Starlette(routes=routes, exception_handlers=refusals), studio.door, ("/upload",), patience
    )


def _home(studio: Studio, request: Request) -> Response:
    return RedirectResponse(f"/{studio.screens[0].name}", 303)


async def _enter(studio: Studio, request: Request) -> Response:
    """The page whose script takes the token out of the address; or the form that it sends."""
    if request.method == "GET":
        return pages.page("enter.html", {})
    form = await _form(request)
    session = studio.door.enter(form.get("token", "")) if isinstance(form, Form) else None
    if session is None:
        return PlainTextResponse(answer("used"), 401)
    entered = RedirectResponse("/", 303)
    entered.set_cookie(
        studio.door.cookie, session, max_age=43_200, httponly=True, samesite="strict", path="/"
    )
    return entered


async def _leave(studio: Studio, request: Request) -> Response:
    form = await _keyed(studio, request)
    if not isinstance(form, Form):
        return form
    studio.door.leave(request.scope["session"])
    gone = PlainTextResponse(answer("left"))
    gone.delete_cookie(studio.door.cookie, path="/")
    return gone


async def _form(request: Request) -> Form | Response:
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM_TYPE:
        return PlainTextResponse(answer("form"), 415)
    try:
        return parsed(await request.body())
    except GibbousError as error:
        return PlainTextResponse(str(error), 422)


async def _keyed(studio: Studio, request: Request) -> Form | Response:
    """The form of a request, if it holds the key of its session."""
    form = await _form(request)
    if not isinstance(form, Form):
        return form
    key = studio.door.form_key(request.scope["session"]) or ""
    if not key or not hmac.compare_digest(form.pop("key", "").encode(), key.encode()):
        return PlainTextResponse(answer("stale"), 403)
    return form


def _drawn(
    studio: Studio, request: Request, screen: Screen, form: Form, problem: Mapping[str, str] | None
) -> Response:
    """One screen as a page. Whatever its files say wrong is said on it."""
    shown: dict[str, Any] = {}
    try:
        with speaking_flags():
            shown = screen.show(studio, form)
    except GibbousError as error:
        problem = problem or pages.told(error)
    key = studio.door.form_key(request.scope["session"]) or ""
    context = {
        "studio": studio,
        "screen": screen,
        "key": key,
        "once": secrets.token_hex(8),
        "problem": problem,
        "bar": _bar(studio, shown),
        "form": form,
        **shown,
    }
    name = "problem.html" if not shown else f"{screen.name}.html"
    return pages.page(name, context, 422 if problem else 200)


def _bar(studio: Studio, shown: Mapping[str, Any]) -> dict[str, Any]:
    from gibbous.studio.accounts import bar

    with suppress(GibbousError):
        return bar(studio, confidential=bool(shown.get("confidential")) or not shown)
    unread = words()["bar"]["unread"]  # the request itself is no TOML
    return dict.fromkeys(("data", "spent", "left", "whole"), unread) | {
        "reading": None,
        "confidential": True,
    }


async def _show(studio: Studio, screen: Screen, request: Request) -> Response:
    form = Form(dict(request.query_params))
    return await run_in_threadpool(_drawn, studio, request, screen, form, None)


async def _act(studio: Studio, screen: Screen, action: str, request: Request) -> Response:
    form = await _keyed(studio, request)
    if not isinstance(form, Form):
        return form
    act: Callable[[Studio, Form], str] = screen.actions[action]
    try:
        with speaking_flags():
            where = await run_in_threadpool(act, studio, form)
    except GibbousError as error:
        told = pages.told(error)
        return await run_in_threadpool(_drawn, studio, request, screen, form, told)
    return RedirectResponse(f"/{where}", 303)


def _job(studio: Studio, request: Request) -> Response:
    job = studio.jobs.get(request.path_params["job"])
    if job is None:
        return PlainTextResponse(answer("job"), 404)
    facts = {
        "state": job.state,
        "stage": pages.stage(job.stage),
        "share": None if job.share is None else round(job.share, 3),
        "more": studio.jobs.provisional(job) is not None,
        "left": None if job.left is None else pages.duration(job.left),
    }
    return JSONResponse(facts)


async def _cancel(studio: Studio, what: str, request: Request) -> Response:
    """Stop a job; or start its command again, which takes up what was paid for."""
    form = await _keyed(studio, request)
    if not isinstance(form, Form):
        return form
    job = studio.jobs.get(request.path_params["job"])
    if job is None:
        return PlainTextResponse(answer("job"), 404)
    if what == "cancel":
        studio.jobs.cancel(job.id)
    else:
        studio.jobs.again(job.id, form.text("passphrase", 500))
    return RedirectResponse(f"/{job.screen}", 303)
