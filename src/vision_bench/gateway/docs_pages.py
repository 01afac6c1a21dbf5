"""/docs and /redoc from files that travel with us: they open without a network, and load nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

ASSETS = "/docs-assets"

# The one address that the packaged scripts would ask by themselves: a picture under ReDoc's menu.
_REDOC_LOGO = b"https://cdn.redoc.ly/redoc/logo-mini.svg"

# Both pages start with an inline script and draw with inline styles; ReDoc works in a blob: worker. The rest of the
# policy holds whatever the packaged scripts may want to fetch from elsewhere.
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)


def add_docs_pages(app: FastAPI) -> None:
    """Add /docs (Swagger UI), /redoc and their files to ``app``."""

    def redoc_script(_request: Request) -> Response:
        script = (files("fastapi_offline") / "static" / "redoc.standalone.js").read_bytes()
        return Response(script.replace(_REDOC_LOGO, b"docs-assets/favicon.png"), media_type="text/javascript")

    app.add_route(f"{ASSETS}/redoc.standalone.js", redoc_script)
    app.mount(ASSETS, StaticFiles(packages=[("fastapi_offline", "static")]), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def swagger(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title=f"{app.title}: API",
            swagger_js_url=f"{root}{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{root}{ASSETS}/favicon.png",
            swagger_ui_parameters={"validatorUrl": None},  # else it asks a server on the internet for a badge
        )
        return _guarded(page)

    @app.get("/redoc", include_in_schema=False)
    async def redoc(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        page = get_redoc_html(
            openapi_url=f"{root}/openapi.json",
            title=f"{app.title}: API",
            redoc_js_url=f"{root}{ASSETS}/redoc.standalone.js",
            redoc_favicon_url=f"{root}{ASSETS}/favicon.png",
            with_google_fonts=False,
        )
        return _guarded(page)


def _guarded(page: HTMLResponse) -> HTMLResponse:
    page.headers["Content-Security-Policy"] = _POLICY
    return page
