"""Reserves free ports of 127.0.0.1 until a broker listens on them."""

import socket
import sys

HOST = "127.0.0.1"


class ReservedPort:
    """A port number, and where the system allows it a socket that reserves it.

    Linux lets a broker listen on an address to which another socket is bound without listening, if both set
    SO_REUSEADDR (Java's server sockets do); the kernel never returns such a port as a free one.
    Elsewhere the number is only likely to stay free.
    """

    def __init__(self, number: int = 0) -> None:
        """Reserve `number`, or any free port. Raises OSError if it is in use."""
        self._holder = socket.socket()
        try:
            self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._holder.bind((HOST, number))
            self.number: int = self._holder.getsockname()[1]
        except BaseException:
            self._holder.close()
            raise
        if sys.platform != "linux":
            self._holder.close()

    def release(self) -> None:
        self._holder.close()
