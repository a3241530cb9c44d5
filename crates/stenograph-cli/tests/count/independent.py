#!/usr/bin/env python3
"""Counts the tokens of recorded model calls, written from the rules and not from the Rust code.

    independent.py FOLDER|FILE...     prints {agent: {input, output, cache_read, cache_write, calls}} as JSON
    independent.py --self-test        proves every rule below on a hand-made case

It knows files by what is in them, holds only what it counts, and shares nothing with what it checks.
"""
import gzip, json, os, subprocess, sys, tempfile, zlib
from datetime import datetime

COUNTERS = ("input", "output", "cache_read", "cache_write")
BURST_SECONDS = 1.0  # A parent's history is copied into a fork without a pause, and no model answers that fast.
STATED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
DECODER = json.JSONDecoder()


def number(value):
    """A count is a whole number from zero up, as large as machines count; anything else was never a count."""
    return value if type(value) is int and 0 <= value < 2**64 else 0


def table(value):
    return value if isinstance(value, dict) else {}


def text(value):
    """An identity is a text with something in it."""
    return value if isinstance(value, str) else ""


def seconds(text):
    """A moment as seconds, or None when it is not one."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (AttributeError, ValueError, OverflowError):
        return None


def content(path):
    """The bytes of a file, unpacked when its first bytes say it is packed; what cannot be read holds nothing."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:4] == b"\x28\xb5\x2f\xfd":
            return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
        return data
    except (OSError, EOFError, zlib.error, subprocess.CalledProcessError):
        return b""


def records(line):
    """All whole records of a line: two may be welded together, the last may be torn, bytes may be bad."""
    rest, at = line.decode("utf-8", "replace").strip(), 0
    while at < len(rest):
        try:
            value, at = DECODER.raw_decode(rest, at)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value
        while at < len(rest) and rest[at].isspace():
            at += 1


class Count:
    def __init__(self):
        self.claude = {}  # call -> counters
        self.codex = {}  # (thread, how often its count began anew, totals) -> counters
        self.copied, self.older = {}, {}  # a thread's call -> whose it is; -> whose it may be, from further back
        self.own = set()  # what a thread's own file tells as its own
        self.devflow, self.chibi = {}, {}

    def keep(self, calls, key, counters):
        """One row per call, each counter its maximum: the order of files and lines does not matter."""
        calls[key] = tuple(map(max, calls.get(key, counters), counters))

    def claude_call(self, record, place):
        """Claude Code repeats a call's usage on every line of it, in copies of a session, and inside `progress`."""
        if record.get("type") == "progress":
            record = table(table(record.get("data")).get("message"))
        message = table(record.get("message"))
        usage = message.get("usage")
        if record.get("type", "assistant") != "assistant" or message.get("model") == "<synthetic>":
            return  # A record of type assistant, or of no type, whose words are a model's.
        if not any(type(table(usage).get(name)) is int and 0 <= usage[name] < 2**64 for name in STATED):
            return  # A usage that states no count tells of no call.
        lifetimes = table(usage.get("cache_creation")).values()
        written = usage.get("cache_creation_input_tokens", sum(map(number, lifetimes)))
        counts = (usage.get("input_tokens"), usage.get("output_tokens"), usage.get("cache_read_input_tokens"), written)
        if text(message.get("id")):
            key = ("message", message["id"], text(record.get("requestId")))
        else:
            key = ("record", text(record.get("uuid")) or place)
        self.keep(self.claude, key, tuple(map(number, counts)))

    def codex_file(self, path, events, heads, elsewhere):
        """Codex states running totals, so a call is the difference of two; a fork begins with its ancestors'."""
        start, own, _ = heads[0] if heads else (None, path, "")
        own, ancestors = own or path, []
        for _, id, parent in heads:
            ancestors += [name for name in (id, parent) if name and name != own and name not in ancestors]
        zero = before = (0, 0, 0, 0, 0)
        anew, last, burst = 0, start, bool(ancestors)
        for at, (when, totals, last_call) in enumerate(events):
            burst = burst and None not in (when, last) and when - last <= BURST_SECONDS
            last = max(last, when) if burst else last
            if any(now < then for now, then in zip(totals, before)):
                anew, before = anew + 1, zero
            call = (ancestors[0] if burst else own, anew, totals)
            if burst:
                self.copied[(own, anew, totals)] = call
                self.older.setdefault(call, set()).update((name, anew, totals) for name in ancestors[1:])
            read, cached, written, out, _ = (now - then for now, then in zip(totals, before))
            if elsewhere and at == 0:  # The total before stands in another file.
                read, cached, written, out, _ = last_call
            if totals != before:
                self.own |= set() if burst else {call}
                self.keep(self.codex, call, (max(0, read - cached - written), out, cached, written))
            before = totals

    def codex_calls(self):
        """What a thread copied is whose it was first; where the thread between is gone, an older one that has it says so."""
        calls = {}
        for call, counters in self.codex.items():
            seen, first = set(), call
            while first and first not in seen:
                seen.add(first)
                call = first
                older = self.older.get(call, ()) if call not in self.own else ()
                told = sorted(older for older in older if older in self.codex)
                first = self.copied.get(call) or next(iter(told), None)
            calls[call] = tuple(map(min, calls.get(call, counters), counters))
        return calls.values()

    def devflow_run(self, run, path):
        """devflow states a run's totals; its turns are told within them."""
        meta, turns = table(run.get("metadata")), run.get("turns")
        if not isinstance(turns, list) or "totalTokensIn" not in meta or "totalTokensOut" not in meta:
            return False
        turns = [turn for turn in map(table, turns) if turn.get("role") == "assistant"]
        spent = sum(1 for turn in turns if number(turn.get("tokensIn")) or number(turn.get("tokensOut")))
        counts = (number(meta["totalTokensIn"]), number(meta["totalTokensOut"]), 0, 0, max(1, spent))
        self.keep(self.devflow, (text(run.get("runId")) or path, text(meta.get("startedAt"))), counts)
        return True

    def chibi_call(self, record, place):
        """Chibi writes one line per answer, whose id and moment make it one; what came from the cache is told within the prompt."""
        usage = table(record.get("response")).get("usage")
        if set(record) == {"timestamp", "response"} and isinstance(usage, dict):
            cached = number(table(usage.get("prompt_tokens_details")).get("cached_tokens"))
            prompt, answer = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
            written = number(table(usage.get("prompt_tokens_details")).get("cache_write_tokens"))
            id = text(record["response"].get("id"))
            key = (id, json.dumps(record["timestamp"])) if id else place
            self.keep(self.chibi, key, (max(0, prompt - cached - written), answer, cached, written))

    def file(self, path):
        data, events, heads, start, elsewhere = content(path), [], [], None, False
        if b'"totalTokensIn"' in data and self.devflow_run(next(records(data), {}), path):
            return
        for place, line in enumerate(data.split(b"\n")):
            if start is not None and not any(word in line for word in (b'usage"', b"token_count", b"session_meta")):
                continue
            for record in records(line):
                kind, payload = record.get("type"), table(record.get("payload"))
                start = seconds(record.get("timestamp")) if start is None else start
                if kind == "session_meta" and not events:
                    spawn = table(table(table(payload.get("source")).get("subagent")).get("thread_spawn"))
                    parents = (payload.get("forked_from_id"), payload.get("parent_thread_id"), spawn.get("parent_thread_id"))
                    parent = next(filter(None, map(text, parents)), "")
                    elsewhere = elsewhere or isinstance(payload.get("history_base"), dict) and not heads
                    heads.append((seconds(record.get("timestamp")), text(payload.get("id")), parent))
                if kind == "event_msg" and payload.get("type") == "token_count":
                    total = table(payload.get("info")).get("total_token_usage")
                    if isinstance(total, dict):
                        names = ("input", "cached_input", "cache_write_input", "output", "reasoning_output")
                        stated = [total.get(name + "_tokens") for name in names]
                        last = table(payload["info"].get("last_token_usage"))
                        last = tuple(number(last.get(name + "_tokens")) for name in names)
                        # A total with a count that is none is no total; the next one has what it lacks.
                        if all(count is None or number(count) == count and type(count) is int for count in stated):
                            events.append((seconds(record.get("timestamp")), tuple(map(number, stated)), last))
                self.claude_call(record, (path, place))
                self.chibi_call(record, (path, place))
        self.codex_file(path, events, heads, elsewhere)

    def report(self):
        rows = {"claude-code": self.claude.values(), "codex": self.codex_calls()}
        rows.update({"devflow": self.devflow.values(), "chibi": self.chibi.values()})
        report = {}
        for agent, calls in rows.items():
            calls = [call if len(call) == 5 else (*call, 1) for call in calls]
            report[agent] = {name: sum(column) for name, column in zip((*COUNTERS, "calls"), zip(*calls))}
        return {agent: row or dict.fromkeys((*COUNTERS, "calls"), 0) for agent, row in report.items()}


def count(paths):
    total = Count()
    for path in paths:
        if os.path.isfile(path):
            total.file(path)
        for folder, _, names in os.walk(path):
            for name in names:
                if os.path.isfile(os.path.join(folder, name)):
                    total.file(os.path.join(folder, name))
    return total.report()


def self_test():
    """Every case is files, the agent to look at, and what it must have used."""
    sys.dont_write_bytecode = True
    import independent_cases
    for title, files, agent, expected in independent_cases.CASES:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data if isinstance(data, bytes) else "\n".join(data).encode())
            found = tuple(count([folder])[agent].values())
            assert found == expected, f"{title}: counted {found}, not {expected}"
    print(f"{len(independent_cases.CASES)} cases hold")


if __name__ == "__main__":
    self_test() if sys.argv[1:] == ["--self-test"] else print(json.dumps(count(sys.argv[1:]), indent=2))
