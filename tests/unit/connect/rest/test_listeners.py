import socket

from sparkmirror.clusters.ports import HOST
from sparkmirror.connect.rest.rest_settings import Listener
from sparkmirror.connect.rest.server import bind_all, close_all


def test_a_short_answer_does_not_wait_for_the_clients_acknowledgement() -> None:
    bound = bind_all([Listener("http", HOST, 0)], "listeners")
    try:
        with socket.create_connection((HOST, bound[0].port)):
            served, _ = bound[0].socket.accept()
            with served:
                assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        close_all(bound)
