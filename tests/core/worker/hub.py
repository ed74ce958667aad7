"""A model hub on this machine's loopback: one repository from a folder, with the answers huggingface_hub reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub(folder: Path, name: str, gated: bool = False) -> Iterator[str]:
    """Serve `folder` as the model `name`; gives the endpoint. Other names are not found."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET(body=False)

        def do_GET(self, body: bool = True) -> None:
            path = self.path.partition("?")[0]
            if name not in path:
                self._say(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body)
            elif gated:
                self._say(403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"}, body)
            elif path.startswith(f"/api/models/{name}/tree"):
                entries = [_entry(p) for p in sorted(folder.iterdir())]
                self._say(200, json.dumps(entries).encode(), {"Content-Type": "application/json"}, body)
            elif path.startswith(f"/api/models/{name}"):
                siblings = [{"rfilename": p.name} for p in sorted(folder.iterdir())]
                answer = {"_id": "1", "id": name, "sha": COMMIT, "private": False, "siblings": siblings, "tags": []}
                self._say(200, json.dumps(answer).encode(), {"Content-Type": "application/json"}, body)
            else:
                file = folder / path.rpartition("/")[2]
                if not file.is_file():
                    self._say(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, body)
                    return
                content = file.read_bytes()
                digest = hashlib.sha256(content).hexdigest()
                self._say(200, content, {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT}, body)

        def _say(self, code: int, content: bytes, headers: dict[str, str], body: bool) -> None:
            self.send_response(code)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _entry(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    git = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
    return {"type": "file", "oid": git, "size": len(content), "path": path.name}
