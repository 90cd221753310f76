"""Pages and `/mirror` as they are served: by a leader, by followers, by a process without a REST API."""

import gzip
import http.client
import logging
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from sparkmirror.cli.http_server import Address, address, serve_metrics, serve_pages
from sparkmirror.clusters.ports import HOST
from sparkmirror.connect.rest.connections import Limits
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.domain.connect import NotLeaderError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.page import Metrics
from sparkmirror.mirror.dedicated import MirrorMaker, own_spark
from sparkmirror.storage.progress import PartitionState
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import everything, look, source
from tests.support.rest_requests import Answer, Request, ask
from tests.support.rest_serving import TimeLimits, serving

FLOW: Final = "flow=a-%3Eb"
PAGES: Final = ("/ui/", f"/ui/flow?{FLOW}", f"/ui/topic?{FLOW}&name=orders", f"/ui/groups?{FLOW}")
GZIP_BYTES_MAX: Final = 60_000
METRICS: Final = Metrics(tuple)
HASTY: Final = Limits(response_received_s=1.0)
TAKEN: Final = ".*Address already in use"


def get(url: str, path: str, **headers: str) -> Answer:
    sent = {key.replace("_", "-"): text for key, text in headers.items()}
    return ask(url, Request("GET", path, headers=sent))


def of_leader() -> CurrentView:
    return CurrentView(lambda: Node("leader", "1.0"), everything)


def of_follower(leader_url: str | None) -> CurrentView:
    def looks() -> list[ConnectorLook]:
        raise NotLeaderError(leader_url)

    return CurrentView(lambda: Node("follower", "1.0"), looks)


@pytest.fixture(scope="module")
def leader() -> Iterator[str]:
    with serving(MemoryHerder(), view=of_leader()) as url:
        yield url


@pytest.fixture(scope="module")
def follower(leader: str) -> Iterator[str]:
    herder = MemoryHerder(leads=False, leader_url=leader)
    with serving(herder, view=of_follower(leader), limits=TimeLimits(HASTY)) as url:
        yield url


def test_a_follower_serves_the_leaders_view(leader: str, follower: str) -> None:
    for path in ("/mirror", f"/mirror?{FLOW}", f"/mirror?{FLOW}&topic=orders", f"/mirror?{FLOW}&groups=true"):
        answers = [get(url, path).json() for url in (leader, follower)]
        for answer in answers:
            assert answer.pop("made_at_ms") > 0
        assert answers[0] == answers[1]
        assert answers[1]["node"] == "leader"
    missing = get(follower, "/mirror?flow=x-%3Ey")
    assert (missing.status, missing.message()) == (
        404,
        "There is no flow x->y; flows are: a->archive, a->b, b->a, b->lab",
    )


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_complete_small_and_guarded_on_every_node(path: str, leader: str, follower: str) -> None:
    for url in (leader, follower):
        page = get(url, path, Accept_Encoding="gzip")
        assert (page.status, page.headers["Content-Encoding"]) == (200, "gzip")
        assert len(page.body) <= GZIP_BYTES_MAX
        policy = page.headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert b"</html>" in get(url, path).body


def test_pages_can_only_be_read_and_not_by_foreign_names(leader: str) -> None:
    assert ask(leader, Request("POST", "/ui/flow")).status == 405
    assert get(leader, "/ui/", Host="evil.example").status == 403
    assert get(leader, "/ui/static/lock.json").status == 404
    assert get(leader, "/ui/none").status == 404
    assert get(leader, "/ui/topic?flow=x").status == 404


def test_the_folder_of_the_pages_has_a_slash_at_its_end(leader: str) -> None:
    answer = get(leader, "/ui")
    assert (answer.status, answer.headers["Location"]) == (307, "ui/")


def test_files_are_sent_again_only_when_they_are_others(leader: str) -> None:
    file = get(leader, "/ui/static/htmx.min.js")
    assert file.headers["Content-Type"].startswith("text/javascript")
    assert get(leader, "/ui/static/htmx.min.js", If_None_Match=file.headers["Etag"]).status == 304


def events(url: str, path: str) -> Generator[tuple[str, str], None, None]:
    """Names and data of the events of a stream."""
    host = urlsplit(url)
    connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.getheader("Content-Type", "").startswith("text/event-stream")
        name, data = "", []
        while line := response.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not field and (name or data):
                yield name, "\n".join(data)
                name, data = "", []
    finally:
        connection.close()


def test_a_stream_continues_longer_than_a_response_may_take(follower: str) -> None:
    stream = events(follower, f"/ui/live/group?{FLOW}&name=behind")
    name, html = next(stream)
    assert (name, "<h1>Group <bdi>behind</bdi></h1>" in html) == ("", True)
    told = [next(stream) for _ in range(3)]
    assert [name for name, _ in told] == ["alive"] * 3  # and the part again only if it had changed
    assert all(at.endswith(" UTC") for _, at in told)
    stream.close()


def test_a_stream_of_what_is_not_there_says_so(follower: str) -> None:
    stream = events(follower, "/ui/live/flow?flow=x-%3Ey")
    assert next(stream) == ("trouble", "There is no flow x->y; flows are: a->archive, a->b, b->a, b->lab")
    stream.close()


def test_what_is_looked_at_at_once_is_made_together_and_each_gets_its_own(follower: str) -> None:
    """One request to the leader for all, in which one thing is not there and one is asked for alone."""
    looks = {
        f"/ui/live/group?{FLOW}&name=behind": ("", "<h1>Group <bdi>behind</bdi></h1>"),
        f"/ui/live/topic?{FLOW}&name=none": ("trouble", "none"),
        f"/ui/live/groups?{FLOW}&matching={'%F0%9F%A6%8A' * 900}": ("", "No group"),
        f"/ui/live/flow?{FLOW}": ("", "Topics, worst first"),
    }
    streams = {path: events(follower, path) for path in looks}
    for path, stream in streams.items():
        name, text = next(stream)
        assert (name, looks[path][1] in text) == (looks[path][0], True), text
    for stream in streams.values():
        stream.close()


def test_without_a_leader_pages_say_so() -> None:
    herder = MemoryHerder(leads=False)
    with serving(herder, view=of_follower(None), limits=TimeLimits(leader_found_s=0.1)) as url:
        page = get(url, "/ui/")
        assert (page.status, b"no known leader URL" in page.body) == (409, True)
        assert get(url, "/mirror").status == 409
        stream = events(url, "/ui/live/overview")
        name, text = next(stream)
        assert (name, "no known leader URL" in text) == ("trouble", True)
        stream.close()


def test_a_stream_continues_with_a_new_leader() -> None:
    herder = MemoryHerder(leads=False)

    def looks() -> list[ConnectorLook]:
        raise NotLeaderError(herder.leader_url)

    of_second = CurrentView(lambda: Node("second", "1.0"), lambda: [source(look())])
    limits = TimeLimits(leader_found_s=0.1)
    with (
        ExitStack() as first,
        serving(MemoryHerder(), view=of_second) as second,
        serving(herder, view=CurrentView(lambda: Node("follower", "1.0"), looks), limits=limits) as url,
    ):
        herder.leader_url = first.enter_context(serving(MemoryHerder(), view=of_leader()))
        stream = events(url, "/ui/live/overview")
        name, text = next(stream)
        assert (name, "53 topics, 141 partitions" in text) == ("", True)
        first.close()
        assert next(text for name, text in stream if name == "trouble")
        herder.leader_url = second
        assert "1 topic, 1 partition" in next(text for name, text in stream if name == "")
        stream.close()


def test_a_leader_s_health_names_flows_that_are_not_well() -> None:
    """Status and code are those of the process, as in Java."""
    fine = source(look())
    failed = source(look("payments", 1, {"state": PartitionState.FAILED, "error": "too large", "lag": 4}))
    ready = MemoryHerder().health().message

    def health(view: CurrentView) -> tuple[int, str, str]:
        with serving(MemoryHerder(), view=view) as url:
            answer = get(url, "/health")
            return answer.status, answer.json()["status"], answer.json()["message"]

    def view(seen: ConnectorLook) -> CurrentView:
        return CurrentView(lambda: Node("leader", "1.0"), lambda: [seen])

    assert health(view(fine)) == (200, "healthy", ready)
    assert health(view(failed)) == (200, "healthy", f"{ready}\na->b: action required: too large")
    assert health(of_follower("http://leader")) == (200, "healthy", ready)


# a process without a REST API


@pytest.fixture
def mirror(tmp_path: Path) -> MirrorMaker:
    """A mirror without flows that is not started."""
    return MirrorMaker([], own_spark([], {}, tmp_path / "spark.log"))


@contextmanager
def stopped(server: RestServer) -> Iterator[str]:
    try:
        yield server.urls[0]
    finally:
        server.stop()


def test_pages_metrics_and_health_of_dedicated_mode(
    mirror: MirrorMaker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with stopped(serve_pages(mirror, METRICS, Address(HOST, 0))) as url:
        assert f"pages are at {url}/ui/" in caplog.text
        assert b"No flow runs here yet" in get(url, "/ui/").body
        assert get(url, "/").headers["Location"] == "ui/"
        assert get(url, "/mirror").json()["flows"] == []
        assert get(url, "/health").json() == {
            "status": "starting",
            "message": "The mirror is still starting up.",
        }
        assert get(url, "/metrics").headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert get(url, "/mirror", Host="evil.example").status == 403
        assert get(url, "/connectors").status == 404


def test_the_metrics_port_serves_no_pages_and_every_name(mirror: MirrorMaker) -> None:
    with stopped(serve_metrics(mirror, METRICS, Address(HOST, 0))) as url:
        page = get(url, "/metrics?name[]=one", Host="mirror.example:9404")
        assert (page.status, b"sparkmirror_build_info" in page.body) == (200, True)
        assert ask(url, Request("HEAD", "/metrics")).body == b""
        packed = get(url, "/metrics", Accept_Encoding="deflate, gzip;q=0.5")
        assert packed.headers["Content-Encoding"] == "gzip"
        assert b"sparkmirror_build_info" in gzip.decompress(packed.body)
        assert [get(url, path).status for path in ("/", "/ui/", "/mirror")] == [404] * 3
        assert ask(url, Request("POST", "/metrics")).status == 405


def test_an_address_that_cannot_be_used_is_an_error_that_names_the_option(mirror: MirrorMaker) -> None:
    with stopped(serve_metrics(mirror, METRICS, Address("", 0))) as url:
        port = urlsplit(url).port or 0
        assert get(f"http://{HOST}:{port}", "/metrics").status == 200
        with pytest.raises(SparkmirrorError, match=rf"metrics can't .*{port}: {TAKEN}.*--metrics-port"):
            serve_metrics(mirror, METRICS, Address("", port))
        with pytest.raises(SparkmirrorError, match=rf"pages can't .*{port}: {TAKEN}.*--http"):
            serve_pages(mirror, METRICS, Address("", port))
    with pytest.raises(SparkmirrorError, match=r"no\.such\.host\.invalid"):
        serve_pages(mirror, METRICS, Address("no.such.host.invalid", 0))


def test_an_address_is_a_port_or_a_host_and_a_port() -> None:
    assert [address(text) for text in ("80", ":80", "[::1]:80", "host:80")] == [
        ("", 80),
        ("", 80),
        ("::1", 80),
        ("host", 80),
    ]
