"""An address whose server can be another one later, as behind a load balancer or a name that moves; and one that makes
some statements slow."""
import socket
import threading
import time


class TcpProxy:
    """Passes connections of its own port on to `target`, a port on the loopback address. `delay` says of what a client
    sends at once, such as a statement, for how many seconds it is held back; it may be another one later."""

    def __init__(self, target, delay=None):
        self._target = target
        self.delay = delay or (lambda _: 0)
        self._pairs = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def switch(self, target):
        """New connections go there; those there are end."""
        with self._lock:
            self._target = target
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _shut(end)

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            with self._lock:
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._pairs.append((client, server))
            for source, sink, delay in ((client, server, self._hold_back), (server, client, None)):
                threading.Thread(target=_pass_on, args=(source, sink, delay), daemon=True).start()

    def _hold_back(self, data):
        time.sleep(self.delay(data))


def _pass_on(source, sink, hold_back):
    try:
        while data := source.recv(65536):
            if hold_back:
                hold_back(data)
            sink.sendall(data)
    except OSError:
        pass
    _shut(source)
    _shut(sink)


def _shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
