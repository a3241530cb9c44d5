"""Hand-made cases for independent.py: (what holds, {file: lines or bytes}, agent, (input, output, read, write, calls))."""
import gzip, json


def claude(id="m1", request="r1", input=1, output=5, read=0, write=0, uuid=None, model="some-model", usage=None, kind="assistant"):
    counts = {"input_tokens": input, "output_tokens": output}
    counts.update({"cache_read_input_tokens": read, "cache_creation_input_tokens": write})
    record = {"type": kind, "sessionId": "s", "message": {"model": model, "usage": {**counts, **(usage or {})}}}
    record["message"].update({"id": id} if id else {})
    record.update({"requestId": request} if request else {})
    record.update({"uuid": uuid} if uuid else {})
    return json.dumps(record)


def progress(inner):
    return json.dumps({"type": "progress", "data": {"type": "agent_progress", "message": json.loads(inner)}})


def meta(id, second=0, **more):
    payload = {"id": id, **more}
    return json.dumps({"timestamp": f"2026-01-01T00:00:{second:02}.000Z", "type": "session_meta", "payload": payload})


def tokens(second, *totals, **more):
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "cache_write_input_tokens")
    info = {"total_token_usage": dict(zip(names, totals)), **more} if totals else None
    payload = {"type": "token_count", "info": info}
    return json.dumps({"timestamp": f"2026-01-01T00:00:{second:06.3f}Z", "type": "event_msg", "payload": payload})


def run(turns, metadata, id="run-1"):
    return json.dumps({"runId": id, "metadata": {"startedAt": "2026-01-01T00:00:00Z", **metadata}, "turns": turns}, indent=2)


TURNS = [{"role": "user", "tokensIn": 7}, {"role": "assistant", "tokensOut": 3}, {"role": "assistant", "tokensOut": 4}]
PARENT = [meta("p"), tokens(9, 100, 60, 10), tokens(19, 300, 160, 30)]
REPLAY = [tokens(30.1, 100, 60, 10), tokens(30.2, 300, 160, 30)]
CHILD = [meta("c", 30, forked_from_id="p"), *REPLAY, tokens(45, 400, 200, 35)]
AGENT = [meta("a", 30, source={"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}), *REPLAY, tokens(50, 20, 0, 2)]
GRANDCHILD = [meta("g", 50, forked_from_id="c"), tokens(50.1, 100, 60, 10), tokens(50.2, 300, 160, 30),
              tokens(50.3, 400, 200, 35), tokens(59, 410, 200, 36)]
HEADED = [GRANDCHILD[0], meta("c", 50, forked_from_id="p"), *GRANDCHILD[1:]]
SLOW = [meta("c", 30, forked_from_id="p"), tokens(30.9, 100, 60, 10), tokens(31.8, 300, 160, 30), tokens(45, 400, 200, 35)]
META = {"timestamp": 1, "response": {"id": "x", "usage": {"prompt_tokens": 10, "completion_tokens": 4}}}
CACHED = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}}

CASES = [
    ("lines of one call are one row with each counter's maximum",
     {"a.jsonl": [claude(output=1, read=9, write=3), claude(output=8, read=2, write=3)]}, "claude-code", (1, 8, 9, 3, 1)),
    ("a copy in another file counts once, in whatever order the files come",
     {"a.jsonl": [claude(output=8)], "b.jsonl": [claude(output=1)]}, "claude-code", (1, 8, 0, 0, 1)),
    ("another request is another call", {"a.jsonl": [claude(), claude(request="r2")]}, "claude-code", (2, 10, 0, 0, 2)),
    ("without a request id the message id is enough",
     {"a.jsonl": [claude(request=None), claude(request=None)]}, "claude-code", (1, 5, 0, 0, 1)),
    ("a call seen only inside progress counts", {"a.jsonl": [progress(claude())]}, "claude-code", (1, 5, 0, 0, 1)),
    ("a call seen inside progress and outside is one",
     {"a.jsonl": [progress(claude(output=9)), claude()]}, "claude-code", (1, 9, 0, 0, 1)),
    ("a synthetic message does not count", {"a.jsonl": [claude(model="<synthetic>")]}, "claude-code", (0, 0, 0, 0, 0)),
    ("without a message id a record counts by its own id, its copies once",
     {"a.jsonl": [claude(id=None, uuid="u1"), claude(id=None, uuid="u1"), claude(id=None, uuid="u2")]}, "claude-code", (2, 10, 0, 0, 2)),
    ("without any id every line counts", {"a.jsonl": [claude(id=None), claude(id=None)]}, "claude-code", (2, 10, 0, 0, 2)),
    ("a total told again in a tool's result does not count",
     {"a.jsonl": [json.dumps({"type": "user", "message": {"role": "user"}, "toolUseResult": {"usage": {"input_tokens": 4}}})]},
     "claude-code", (0, 0, 0, 0, 0)),
    ("what the lifetimes add up to is written when nothing else says how much",
     {"a.jsonl": [json.dumps({"type": "assistant", "message": {"id": "m", "usage": {
         "input_tokens": 0, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3}}}})]}, "claude-code", (0, 0, 0, 5, 1)),
    ("negative, broken and true counts are zero",
     {"a.jsonl": [claude(input=-4, output=5, read=True, write="7")]}, "claude-code", (0, 5, 0, 0, 1)),
    ("a usage without any count is no call",
     {"a.jsonl": [claude(input=-4, output=1.5, read=True, write="7")]}, "claude-code", (0, 0, 0, 0, 0)),
    ("a record without a type counts", {"a.jsonl": [claude().replace('"type": "assistant", ', "")]}, "claude-code", (1, 5, 0, 0, 1)),
    ("two records welded on one line are two",
     {"a.jsonl": [claude() + claude(id="m2")]}, "claude-code", (2, 10, 0, 0, 2)),
    ("a torn last line is no record", {"a.jsonl": [claude(), claude(id="m2")[:-20]]}, "claude-code", (1, 5, 0, 0, 1)),
    ("bytes that are no text do not hide the record they are in",
     {"a.jsonl": claude(model="\x01").encode().replace(b"\\u0001", b"\xff\xfe")}, "claude-code", (1, 5, 0, 0, 1)),
    ("a call is the difference of two totals, and no information is none",
     {"a.jsonl": [meta("t"), tokens(1), tokens(2, 100, 60, 10), tokens(3, 300, 160, 30)]}, "codex", (140, 30, 160, 0, 2)),
    ("an equal total is no call", {"a.jsonl": [meta("t"), tokens(2, 5, 0, 1), tokens(3, 5, 0, 1)]}, "codex", (5, 1, 0, 0, 1)),
    ("a total that goes down began anew", {"a.jsonl": [meta("t"), tokens(2, 50, 0, 9), tokens(3, 20, 0, 2)]}, "codex", (70, 11, 0, 0, 2)),
    ("the same total after a new beginning counts again",
     {"a.jsonl": [meta("t"), tokens(2, 5, 0, 1), tokens(3, 9, 0, 2), tokens(4, 5, 0, 1)]}, "codex", (14, 3, 0, 0, 3)),
    ("what is read from and written to the cache is not input",
     {"a.jsonl": [meta("t"), tokens(2, 100, 60, 10, 15)]}, "codex", (25, 10, 60, 15, 1)),
    ("a fork's burst is the parent's", {"p.jsonl": PARENT, "c.jsonl": CHILD}, "codex", (200, 35, 200, 0, 3)),
    ("a fork's burst counts where the parent is gone", {"c.jsonl": CHILD}, "codex", (200, 35, 200, 0, 3)),
    ("a sub-agent that counts from zero is told from its parent",
     {"p.jsonl": PARENT, "a.jsonl": AGENT}, "codex", (160, 32, 160, 0, 3)),
    ("two forks of one parent tell its calls once",
     {"a.jsonl": AGENT, "c.jsonl": CHILD}, "codex", (220, 37, 200, 0, 4)),
    ("a fork of a fork tells the first parent's calls once",
     {"p.jsonl": PARENT, "c.jsonl": CHILD, "g.jsonl": GRANDCHILD}, "codex", (210, 36, 200, 0, 4)),
    ("where the fork between is gone, the heads of the history say whose it was",
     {"p.jsonl": PARENT, "g.jsonl": HEADED}, "codex", (210, 36, 200, 0, 4)),
    ("a history that is copied for longer than a second is still one", {"p.jsonl": PARENT, "c.jsonl": SLOW}, "codex", (200, 35, 200, 0, 3)),
    ("where the history stands in another file, the first call says itself what it took",
     {"p.jsonl": PARENT, "c.jsonl": [meta("c", 30, forked_from_id="p", history_base={"thread_id": "p"}), tokens(
         45, 400, 200, 35, last_token_usage={"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 5})]},
     "codex", (200, 35, 200, 0, 3)),
    ("a total with a count that is none is told by the next one",
     {"a.jsonl": [meta("t"), tokens(2, 100, 60, 10), tokens(3, -5, 60, 12), tokens(4, 300, 160, 30)]}, "codex", (140, 30, 160, 0, 2)),
    ("a thread that is no fork owns what it did in its first second",
     {"p.jsonl": PARENT, "q.jsonl": [meta("q", 30), *REPLAY]}, "codex", (280, 60, 320, 0, 4)),
    ("a copy of a rollout counts once", {"a.jsonl": PARENT, "b.jsonl": PARENT}, "codex", (140, 30, 160, 0, 2)),
    ("a run's totals count and its turns do not",
     {"transcript.json": run(TURNS, {"totalTokensIn": 70, "totalTokensOut": 30}).encode()}, "devflow", (70, 30, 0, 0, 2)),
    ("a packed run counts, beside its plain form once",
     {"transcript.json": run(TURNS, {"totalTokensIn": 70, "totalTokensOut": 30}).encode(),
      "transcript.json.gz": gzip.compress(run(TURNS, {"totalTokensIn": 70, "totalTokensOut": 30}).encode())}, "devflow", (70, 30, 0, 0, 2)),
    ("a run without counted turns is one call",
     {"transcript.json": run([], {"totalTokensIn": 1, "totalTokensOut": 2}).encode()}, "devflow", (1, 2, 0, 0, 1)),
    ("every answer's line counts, its copies once",
     {"response_meta.jsonl": [json.dumps(META), json.dumps({**META, "timestamp": 2})], "copy.jsonl": [json.dumps(META)]}, "chibi", (20, 8, 0, 0, 2)),
    ("what came from the cache is told within the prompt",
     {"response_meta.jsonl": [json.dumps({"timestamp": 1, "response": {"usage": CACHED}})]}, "chibi", (4, 4, 6, 0, 1)),
]
