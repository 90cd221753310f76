"""Says what was asked for and by whom, for the events of a connector."""

from starlette.requests import Request

from sparkmirror.connect.rest.authentication import login_of


def requested(action: str, request: Request) -> str:
    user = login_of(request.scope).user
    client = request.scope.get("client")
    address = "" if client is None else f" from {client[0]}"
    by = "a client that need not log in" if user is None else repr(user)
    return f"{action}, asked for by {by}{address}"
