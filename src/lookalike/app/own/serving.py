"""Search of a folder in a browser: a page, and the same as JSON, for this machine alone unless there is a token.

What is sent is bounded before it is decoded, and nothing of it is written.
"""

from __future__ import annotations

import asyncio
import ipaddress
import mimetypes
import os
import secrets
import socket
import time
import warnings
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from PIL.Image import Image
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from lookalike.app.own.doubtful import Doubt, doubtful
from lookalike.app.own.explanation import Explained, explain_hits
from lookalike.app.own.models import OpenModel
from lookalike.app.own.picture_files import tell_passed_over
from lookalike.app.own.search import WAYS, Gallery, open_gallery, ways_of
from lookalike.base.checks import require_known
from lookalike.base.text import counted, printable
from lookalike.explanations.picture import Part
from lookalike.workflow.data.pictures import embedded, jpeg, read_picture, read_sent
from lookalike.workflow.report.html import TEMPLATES
from lookalike.workflow.report.page import assigned, index

MOST_BYTES = 24 * 2**20  # of a picture that is sent
MOST_CALLS = 24  # at a time, each of which may hold as much
PATIENCE_S = 30.0  # for a picture to arrive
SIDE = 320  # of thumbnails, in pixels
SAMPLES = 12  # pictures to begin with
KEPT = 2048  # thumbnails in memory
COOKIE, TOKEN = "lookalike_token", "LOOKALIKE_TOKEN"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HERE = Path(__file__).parent
SCRIPTS = {"page.css": TEMPLATES, "pair.js": TEMPLATES, "serving.css": HERE, "serving.js": HERE}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
SENT = {"requestBody": {"required": True, "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}}
Answer = TypeVar("Answer")
_Model = Annotated[str | None, Query(description="of /about; the first if left out")]
_Way = Annotated[str | None, Query(description="of comparing: cosine, structure or graph, as the model")]
ALWAYS: dict[int | str, dict[str, Any]] = {
    401: {"description": "No token, where one is needed."},
    403: {"description": "Asked by a page of another site, or by another name than this machine's own."},
    503: {"description": f"More than {MOST_CALLS} calls at a time."},
}
GONE: dict[int | str, dict[str, Any]] = {404: {"description": "No such picture, or its file has gone."}}
REFUSED: dict[int | str, dict[str, Any]] = GONE | {
    408: {"description": f"The picture has not arrived in {PATIENCE_S:g} s."},
    413: {"description": f"More than {MOST_BYTES:,} bytes."},
    415: {"description": "A form; the body is the picture itself."},
    422: {"description": "No readable picture, one of too many pixels, or an unknown value: `detail` says which."},
}


class Named(BaseModel):
    """A picture of the folder."""

    picture: str = Field(description="its path below the folder")
    number: int = Field(description="by which /pictures and /thumbnails have it")


class FoundPicture(Named):
    """A picture that was found."""

    score: float = Field(description="how it compares with the query, by the answer's measure")
    explanation: dict[str, Any] | None = Field(
        None, description="with `why`: as of /explain; null where the file can no longer be read"
    )
    part: Part | None = Field(None, description="with `why`: as of /explain, or null like `explanation`")


class Asked(BaseModel):
    """The query, of whatever kind its file is."""

    shown: str = Field(description="the picture, as a data: address")
    part: Part = Field(description="that the model sees: left, top, width and height, as shares of the picture's")


class ExplainedPicture(Named):
    """The query beside a picture of the folder."""

    model: str
    way: str
    milliseconds: float = Field(description="for decoding and the explanation")
    query: Asked
    explanation: dict[str, Any] = Field(description="words, maps in percent, counterparts")
    part: Part = Field(description="of the picture that the model sees, see `query`")


class Found(BaseModel):
    """What looks most like a query, best first."""

    model: str
    way: str
    measure: str
    pictures: int = Field(description="that were searched")
    exact: bool = Field(description="whether each was compared, or candidates of more than a million")
    milliseconds: float = Field(description="for decoding, search and explanations")
    query: Asked | None = Field(None, description="with `why`: the picture that was sent")
    hits: list[FoundPicture]


class Seer(BaseModel):
    """A model, and the ways in which it compares."""

    model: str
    ways: list[str]


class About(BaseModel):
    """What is served."""

    folder: str
    pictures: int
    models: list[Seer]
    folders: list[str] = Field(description="that a search can be kept to")
    samples: list[Named] = Field(description="pictures to begin with")
    unreadable: list[str]


class DoubtfulPictures(BaseModel):
    """A doubtful picture, and what it is held against."""

    pictures: list[Named]
    value: float


class Doubtful(BaseModel):
    """Pictures that deserve a look, the clearest first."""

    copies: list[DoubtfulPictures] = Field(description="of equal bytes; their number")
    near_copies: list[DoubtfulPictures] = Field(description="saved or resized anew; bits of their hashes that differ")
    outliers: list[DoubtfulPictures] = Field(description="and the nearest; mean similarity to the five nearest")
    strays: list[DoubtfulPictures] = Field(
        description="nearest to a picture of another folder; that, the nearest of their own, and by how much"
    )


class Service:
    """A folder of pictures as models see it, held open.

    Args:
        models: the first is asked unless another is named.
        folder: of the pictures.
        store: folder of the indexes.
        way: of comparing, of the first model; its own if left out.

    Raises:
        ValueError: as `lookalike.app.own.search.open_gallery`.
    """

    def __init__(self, models: Sequence[OpenModel], folder: Path, store: Path, way: str | None = None) -> None:
        self.folder = folder
        self._models = {each.name: each for each in models}
        self._store, self._first = store, way
        # torch takes all cores, and a large picture memory that the C library keeps for the thread that had it
        self._one = ThreadPoolExecutor(1)
        self._galleries: dict[tuple[str, str, str], Gallery] = {}
        self._doubtful: dict[str, Doubtful] = {}
        self._numbers: dict[str, int] = {}
        gallery = self.gallery()
        gallery.search_picture(read_picture(gallery.folder / gallery.index.stamps[0].name))  # the first is slow
        self._thumbnail = lru_cache(KEPT)(lambda path: jpeg(read_picture(path), SIDE))
        parents = [PurePosixPath(stamp.name).parents for stamp in gallery.index.stamps]
        self._folders = {printable(str(each)): str(each) for found in parents for each in found if str(each) != "."}
        step = max(1, -(-len(parents) // SAMPLES))
        self.about = About(
            folder=printable(folder.resolve().name),
            pictures=len(gallery.index),
            models=[Seer(model=name, ways=list(ways_of(each.network))) for name, each in self._models.items()],
            folders=sorted(self._folders),
            samples=[Named(**self._named(folder / stamp.name)) for stamp in gallery.index.stamps[::step]],
            unreadable=[printable(line) for line in gallery.unreadable],
        )

    async def in_turn(self, call: Callable[[], Answer]) -> Answer:
        """Answer of a call, after those that came before it; all but `path` and `thumbnail` are called so."""
        return await asyncio.get_running_loop().run_in_executor(self._one, call)

    def gallery(self, model: str | None = None, way: str | None = None, below: str | None = None) -> Gallery:
        """The folder, or one below it, by a model and a way; looked at when it is first asked for.

        Raises:
            ValueError: for a name that is not known.
        """
        opened, chosen = self._chosen(model, way)
        if below:
            require_known("below", below, self._folders)
        key = opened.name, chosen, below or ""
        if key not in self._galleries:
            whole = self._galleries.get((opened.name, chosen, "")) or open_gallery(
                opened, self.folder, store=self._store, way=chosen
            )
            self._galleries[opened.name, chosen, ""] = whole
            if below:
                self._galleries[key] = replace(whole, index=whole.index.below(self._folders[below]))
        return self._galleries[key]

    def search(
        self,
        data: bytes,
        *,
        model: str | None,
        way: str | None,
        below: str | None,
        top: int,
        why: bool,
        without: int | None,
    ) -> Found:
        """Pictures that look most like that of some bytes; arguments as `application` documents them.

        Raises:
            ValueError: if it is no picture that is decoded, or for a name that is not known.
        """
        gallery = self.gallery(model, way, below)
        own = None if without is None else self.path(without)
        started = time.perf_counter()
        picture, measure = read_sent(data), WAYS[gallery.way]
        more = gallery.search_picture(picture, top + (own is not None))
        hits = [hit for hit in more if hit.path != own][:top]
        paths = [hit.path for hit in hits]
        explained = _explained(gallery.model, picture, paths, measure.explained_by) if why else [None] * len(hits)
        took = _milliseconds(started)
        return Found(
            model=gallery.model.name,
            way=gallery.way,
            measure=measure.measure,
            pictures=len(gallery.index),
            exact=gallery.is_exact,
            milliseconds=took,
            query=next((_asked(each) for each in explained if each), None),
            hits=[
                FoundPicture(**self._named(hit.path), **(_reason(each) if each else {}), score=hit.score)
                for hit, each in zip(hits, explained, strict=True)
            ],
        )

    def explain(self, data: bytes, number: int, *, model: str | None, way: str | None) -> ExplainedPicture:
        """Why the picture of some bytes looks like one of the folder; arguments as `application` documents them.

        Raises:
            ValueError: as `search`.
            HTTPException: as `path`.
        """
        opened, chosen = self._chosen(model, way)
        path = self.path(number)
        started = time.perf_counter()
        (explained,) = explain_hits(opened, read_sent(data), [path], method=WAYS[chosen].explained_by)
        took = _milliseconds(started)
        return ExplainedPicture(
            **self._named(path),
            **_reason(explained),
            model=opened.name,
            way=chosen,
            milliseconds=took,
            query=_asked(explained),
        )

    def doubtful(self, model: str | None) -> Doubtful:
        """Pictures that deserve a look; found when they are first asked for."""
        name = self._known(model)
        ways = ways_of(self._models[name].network)
        gallery = self.gallery(name, "cosine" if "cosine" in ways else None)
        if name not in self._doubtful:
            kinds = {kind: [self._doubt(each) for each in found] for kind, found in doubtful(gallery).items()}
            self._doubtful[name] = Doubtful(**kinds)
        return self._doubtful[name]

    def path(self, number: int) -> Path:
        """The file of a number that an answer has given.

        Raises:
            HTTPException: 404 if there is none, or the file is gone.
        """
        names = list(self._numbers)
        if not 0 <= number < len(names) or not (path := self.folder / names[number]).is_file():
            raise HTTPException(404, f"{number}: no such picture")
        return path

    def thumbnail(self, number: int) -> bytes:
        """A small JPEG of a picture."""
        return self._thumbnail(self.path(number))

    def _known(self, model: str | None) -> str:
        name = model or next(iter(self._models))
        require_known("model", name, self._models)
        return name

    def _chosen(self, model: str | None, way: str | None) -> tuple[OpenModel, str]:
        opened = self._models[self._known(model)]
        ways = ways_of(opened.network)
        way = way or (self._first if opened.name == next(iter(self._models)) else None) or next(iter(ways))
        require_known("way", way, ways)
        return opened, way

    def _named(self, path: Path) -> dict[str, Any]:
        name = path.relative_to(self.folder).as_posix()
        return {"picture": printable(name), "number": self._numbers.setdefault(name, len(self._numbers))}

    def _doubt(self, doubt: Doubt) -> DoubtfulPictures:
        named = [Named(**self._named(self.folder / name)) for name in doubt.pictures]
        return DoubtfulPictures(pictures=named, value=round(doubt.value, 4))


def application(service: Service, token: str = "") -> FastAPI:
    """The page and the JSON of a service; /openapi.json describes the latter.

    Args:
        service: that answers.
        token: without which nothing is answered; where it is empty, calls by a name of this machine alone are.
    """
    app = FastAPI(title="lookalike", version=version("lookalike"), docs_url=None, redoc_url=None, responses=ALWAYS)
    asked = [Depends(_require_known_words)]
    page = _page(service.about)

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = _refusal(request, token) or await call_next(request)
        answer.headers.update(HEADERS)
        return answer

    @app.exception_handler(ValueError)
    async def refuse(request: Request, error: ValueError) -> JSONResponse:
        return JSONResponse({"detail": printable(str(error))}, 422)

    @app.get("/", include_in_schema=False)
    def front() -> Response:
        return Response(page, media_type="text/html")

    @app.get("/data.js", include_in_schema=False)
    def data() -> Response:
        text = "const PICTURES = {};\n" + assigned("const SHOWN", index([]))
        return Response(text, media_type="text/javascript")

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> FileResponse:
        if name not in SCRIPTS:
            raise HTTPException(404, "no such file")
        return FileResponse(SCRIPTS[name] / name)

    @app.get("/about")
    def about() -> About:
        """What is served: the folder, its folders, and the models with their ways of comparing."""
        return service.about

    @app.post("/search", openapi_extra=SENT, responses=REFUSED, dependencies=asked)
    async def search(
        request: Request,
        model: _Model = None,
        way: _Way = None,
        below: Annotated[str | None, Query(description="folder of /about that the search is kept to")] = None,
        top: Annotated[int, Query(ge=1, le=100, description="pictures that are found")] = 12,
        why: Annotated[bool, Query(description="explain each")] = False,
        without: Annotated[int | None, Query(description="number of a picture that is left out: the query")] = None,
    ) -> Found:
        """What looks most like the picture that is sent as the body, as it is: no form, no name."""
        body = await _body(request)
        found = partial(service.search, body, model=model, way=way, below=below, top=top, why=why, without=without)
        return await service.in_turn(found)

    @app.post("/explain", openapi_extra=SENT, responses=REFUSED, dependencies=asked)
    async def explain(
        request: Request,
        number: Annotated[int, Query(description="of the picture of the folder, as answers give it")],
        model: _Model = None,
        way: _Way = None,
    ) -> ExplainedPicture:
        """Why the picture that is sent, as to /search, looks like one of the folder, found or not."""
        body = await _body(request)
        return await service.in_turn(partial(service.explain, body, number, model=model, way=way))

    @app.get("/doubtful", responses={422: REFUSED[422]}, dependencies=asked)
    async def look_through(model: str | None = None) -> Doubtful:
        """Copies, near copies, outliers, and pictures that are nearest to one of another folder."""
        return await service.in_turn(partial(service.doubtful, model))

    @app.get("/pictures/{number}", response_class=FileResponse, responses=GONE)
    def picture(number: int) -> FileResponse:
        """A file as it is."""
        path = service.path(number)
        kind = mimetypes.guess_type(path.name)[0] or ""
        return FileResponse(path, media_type=kind if kind.startswith("image/") else "application/octet-stream")

    @app.get("/thumbnails/{number}", response_class=Response, responses=GONE)
    def thumbnail(number: int) -> Response:
        """A small JPEG."""
        return Response(service.thumbnail(number), media_type="image/jpeg")

    return app


def server_of(app: FastAPI) -> uvicorn.Server:
    """A server that answers `MOST_CALLS` at a time, and others by 503."""
    limit = MOST_CALLS + 1  # uvicorn refuses at its limit, and counts the call that it looks at
    return uvicorn.Server(
        uvicorn.Config(
            app, log_level="error", access_log=False, limit_concurrency=limit, server_header=False, proxy_headers=False
        )
    )


def print_service(
    models: Sequence[OpenModel], folder: Path, *, store: Path, way: str | None, host: str, port: int
) -> None:
    """Serve a folder until the call is ended, and print the address.

    Args:
        models: that see the pictures.
        folder: of them.
        store: folder of the indexes.
        way: of comparing, of the first model.
        host: address to listen at; one that others reach has a token, ``$LOOKALIKE_TOKEN`` or one that is drawn.
        port: 0 for a free one.

    Raises:
        ValueError: as `Service`.
        OSError: if the port is taken.
    """
    local = is_loopback(host)
    token = os.environ.get(TOKEN) or ("" if local else secrets.token_urlsafe(16))
    service = Service(models, folder, store, way)
    server = server_of(application(service, token))
    warnings.filterwarnings("ignore", module="PIL")  # of what others send
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ValueError(f"--host {host} --port {port}: {error.strerror or error}; --port 0 takes a free one") from None
    with listening, suppress(KeyboardInterrupt), server.capture_signals():  # Ctrl-C counts from the printed line on
        place = f"[{host}]" if ":" in host else host
        address = f"http://{place}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
        tell_passed_over(service.about.unreadable)
        print(f"{counted(service.about.pictures, 'picture')} at {address}, until Ctrl-C", flush=True)
        server.run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether nobody else reaches an address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _milliseconds(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 1)


def _explained(model: OpenModel, query: Image, paths: Sequence[Path], method: str | None) -> list[Explained | None]:
    """Reasons for each of some pictures, ``None`` for a file that has gone or broken since the folder was looked at."""
    try:
        return [*explain_hits(model, query, paths, method=method)]
    except ValueError:
        if len(paths) == 1:
            return [None]
        middle = len(paths) // 2
        return [each for half in (paths[:middle], paths[middle:]) for each in _explained(model, query, half, method)]


def _asked(explained: Explained) -> Asked:
    return Asked(shown=embedded(explained.pictures[0], SIDE), part=explained.parts[0])


def _reason(explained: Explained) -> dict[str, Any]:
    return {"explanation": explained.data(), "part": explained.parts[1]}


def _page(about: About) -> str:
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader([HERE, TEMPLATES]), autoescape=True, trim_blocks=True)
    return environment.get_template("serving.html").render(about=about)


def _require_known_words(request: Request) -> None:
    known = [each.alias for each in request.scope["route"].dependant.query_params]
    for word in request.query_params.keys() - {"token"}:
        require_known("behind the ?", word, known)


def _refusal(request: Request, token: str) -> Response | None:
    """Answer to a request that is not allowed, or that has just shown the token; ``None`` for all others."""
    headers, host = request.headers, request.headers.get("host", "")
    elsewhere = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
    origin = headers.get("origin", f"//{host}")  # older browsers send it alone, `null` where they hide it
    if elsewhere or origin.partition("//")[2].lower() != host.lower():
        return JSONResponse({"detail": "asked by a page of another site"}, 403)
    if not token:
        with suppress(ValueError):  # or a page elsewhere could have its own name lead here
            if urlsplit(f"//{host}").hostname in LOOPBACK:
                return None
        return JSONResponse({"detail": "asked for by another name than this machine's own"}, 403)
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    shown = request.query_params.get("token")
    for given in filter(None, (shown, bearer, request.cookies.get(COOKIE))):
        if secrets.compare_digest(given.encode("utf-8", "replace"), token.encode()):
            break
    else:
        return JSONResponse({"detail": "needs the token that `lookalike serve` has printed, ?token=..."}, 401)
    if shown is None or request.method != "GET":
        return None
    answer = RedirectResponse(request.url.path, 303)  # without it in the address, which others may see
    answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
    return answer


async def _body(request: Request) -> bytes:
    """Body of a request, refused as soon as it is too long."""
    data, large = bytearray(), HTTPException(413, f"more than {MOST_BYTES:,} bytes")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MOST_BYTES:
        raise large
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for part in request.stream():
                data += part
                if len(data) > MOST_BYTES:
                    raise large
    except TimeoutError:
        raise HTTPException(408, f"the picture has not arrived in {PATIENCE_S:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the call was broken off") from None
    if data.startswith(b"--") and request.headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(415, "a form; the body is the picture itself, as `curl --data-binary @query.jpg` sends it")
    return bytes(data)
