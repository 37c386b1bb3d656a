import http.server, json, threading, urllib.error, urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"sum": sum(body)}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}/"
for numbers in ([1, 2], list(range(1000))):
    print(urllib.request.urlopen(base, json.dumps(numbers).encode()).read())
try:
    urllib.request.urlopen(base + "missing")
except urllib.error.HTTPError as error:
    print(error)
server.shutdown()
