"""Reads pages and sends their forms as a browser does."""

import re
from html import unescape
from urllib.parse import urlencode

from tests.support.mirror_looks import SOURCE
from tests.support.rest_requests import Answer, Request, ask


class Page:
    """A browser that looks at one flow on one node."""

    def __init__(self, url: str, login: str | None = None, flow: str = "a->b") -> None:
        self.url = url
        self.flow = flow
        self.login = {} if login is None else {"Authorization": login}
        self.origin = {"Origin": url}

    def get(self, path: str, **query: str) -> Answer:
        return ask(self.url, Request("GET", f"/ui/{path}?{urlencode(query)}", headers=self.login))

    def fields(self, action: str, name: str = SOURCE) -> dict[str, str]:
        """The form that asks whether it should be done."""
        html = self.get("act", flow=self.flow, name=name, action=action).body.decode()
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', html)
        return {key: unescape(value) for key, value in found}

    def send(self, fields: dict[str, str], **headers: str) -> Answer:
        body = urlencode(fields).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        others = {key.replace("_", "-"): text for key, text in headers.items()}
        sent = {**self.login, **form, **self.origin, **others}
        return ask(self.url, Request("POST", "/ui/act", body, sent))
