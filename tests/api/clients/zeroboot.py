"""The requests that the zeroboot SDKs make, with their headers: BASE_URL [KEY]

Prints one JSON line for each, for the test to judge.
"""
import json, sys, urllib.error, urllib.request

base, key = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "zb_live_none"


def call(method, path, body=None, agent="zeroboot-python/0.1.0"):
    request = urllib.request.Request(base + path, method=method)
    request.add_header("Authorization", f"Bearer {key}")
    request.add_header("User-Agent", agent)
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def show(name, answer):
    print(json.dumps({"name": name, "status": answer[0], "body": answer[1]}))


def run(code, language="python", timeout=30):
    return {"code": code, "language": language, "timeout_seconds": timeout}


show("python", call("POST", "/v1/exec", run("print(1+1)")))
show("alias", call("POST", "/exec", {"code": "print(6*7)"}))
show("node", call("POST", "/v1/exec", run("console.log(6*7)", "node"), "zeroboot-node/0.1.0"))
show("javascript", call("POST", "/v1/exec", run("console.log([1,2].map(x => x*2).join())", "javascript")))
show("failure", call("POST", "/v1/exec", run("import sys; print('partly'); sys.exit(3)")))
show("exception", call("POST", "/v1/exec", run("1/0")))
show("timeout", call("POST", "/v1/exec", run("while True: pass", timeout=1)))
show("batch", call("POST", "/v1/exec/batch", {"executions": [run(f"print({n})") for n in range(4)]}))
show("health", call("GET", "/v1/health"))
