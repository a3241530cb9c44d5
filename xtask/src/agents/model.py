"""The scripted model that real agents ask. Beside what `fake_model.py` keeps, it writes a line with the body of every
request that asks for an answer, and with the tokens that its answer states."""
import json
import os
import sys
import threading

folder, tools = sys.argv[1], sys.argv[2]
sys.path.insert(0, tools)
import fake_model  # noqa: E402

request = threading.local()
tokens_of = fake_model.usage


class Handler(fake_model.H):
    def do_POST(self):
        request.path = self.path.split("?")[0]
        super().do_POST()


def kept(body):
    """The tokens that an answer states, or that an agent only asked to be counted."""
    usage = tokens_of(body)
    if not request.path.endswith(("/count_tokens", ":countTokens")):
        line = {"path": request.path, "input": usage["in"], "output": usage["out"], "thinking": usage["reason"], "body": body}
        with fake_model.LOCK, open(os.path.join(folder, "answers.jsonl"), "a") as file:
            file.write(json.dumps(line) + "\n")
    return usage


os.makedirs(folder, exist_ok=True)
fake_model.usage = kept
fake_model.LOGDIR = folder
fake_model.ThreadingHTTPServer.daemon_threads = True
fake_model.ThreadingHTTPServer.allow_reuse_address = True
fake_model.ThreadingHTTPServer(("127.0.0.1", 18080), Handler).serve_forever()
