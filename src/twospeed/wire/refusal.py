"""Why a response is not an answer: refused by its status, or a web page in place of an API."""

from __future__ import annotations

import re

from twospeed.wire.error_object import refusal_message
from twospeed.wire.json_values import NotJsonError, decode
from twospeed.wire.reading import StreamError

_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_SHOWN_CHARS = 200


def refused(status: int, headers: dict[str, str], body: bytes) -> StreamError:
    """What the server said with a status other than 2xx.

    Args:
        status: the HTTP status code.
        headers: values by lower-case name.
        body: the whole body, content coding undone.
    """
    return StreamError(kind="http", message=_reason(status, headers, body), http_status=status)


def looks_like_html(body: bytes, content_type: str) -> bool:
    """True when the body is a web page: a wrong path, a login page, a proxy's error.

    Args:
        body: the body, or its beginning.
        content_type: value of the header, in lower case.
    """
    start = body[:200].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html")) or content_type.startswith("text/html")


def html_instead(body: bytes, status: int) -> StreamError:
    """Error for a web page that came with a status of success.

    Args:
        body: the page.
        status: the HTTP status code.
    """
    message = f"The server answered with {_page(body)}, not with an API answer."
    return StreamError(kind="protocol", message=message, http_status=status)


def start_of(body: bytes) -> str:
    """First characters of a body, on one line.

    Args:
        body: the body, or its beginning.
    """
    text = body[: 4 * _SHOWN_CHARS].decode("utf-8", "replace")
    return " ".join(text.split())[:_SHOWN_CHARS]


def _reason(status: int, headers: dict[str, str], body: bytes) -> str:
    # Some servers refuse in the form in which they would have streamed.
    text = body.decode("utf-8", "replace").strip().removeprefix("data:").strip()
    try:
        found = refusal_message(decode(text))
    except NotJsonError:
        found = None
    if found:
        return found
    if "location" in headers:
        return f"redirected to {headers['location'][:_SHOWN_CHARS]}"
    if looks_like_html(body, headers.get("content-type", "").lower()):
        return _page(body)
    return start_of(body) or f"status {status} with an empty body"


def _page(body: bytes) -> str:
    title = _TITLE.search(body[:65536].decode("utf-8", "replace"))
    words = " ".join(title.group(1).split()) if title else ""
    return f"a web page titled {words!r}" if words else "a web page"
