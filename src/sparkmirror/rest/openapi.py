"""`/openapi.json`, and `/docs` for people: what the API offers, as Kafka's own description has it."""

from starlette.routing import Route


def openapi_routes() -> list[Route]:
    return []
