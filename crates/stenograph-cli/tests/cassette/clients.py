"""The vendors' own clients against recordings that answer in their place: clients.py SCENARIO ADDRESS [SCENARIO ADDRESS ...].

To load them takes longer than to ask, so one run plays several scenarios. Each scenario plays an agent. What does not come as the client expects it ends the program with an error."""

import json
import sys
import urllib.request

import anthropic
import openai

ADDRESS = None
QUESTION = "Where is the tide table?"
MODEL = "claude-sonnet-4-5"
RESULTS = {"c1": "on the wall", "c2": "nothing here"}
LOOK = {"type": "object", "properties": {"where": {"type": "string"}}}
ANTHROPIC_TOOLS = [{"name": "look", "description": "Looks.", "input_schema": LOOK}]
OPENAI_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]


def claude():
    return anthropic.Anthropic(base_url=ADDRESS, api_key="none")


def gpt():
    return openai.OpenAI(base_url=ADDRESS + "/v1", api_key="none")


def drift():
    with urllib.request.urlopen(ADDRESS + "/steno/drift") as response:
        return json.load(response)


def same(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def ask_claude(client, messages, stream):
    """One answer, and the types of its events where it is streamed."""
    asked = dict(model=MODEL, max_tokens=1000, messages=messages, tools=ANTHROPIC_TOOLS)
    if not stream:
        raw = client.messages.with_raw_response.create(**asked)
        same(raw.headers["steno-drift"], "none")
        return raw.parse(), []
    with client.messages.stream(**asked) as events:
        kinds = [event.type for event in events]
        return events.get_final_message(), kinds


def anthropic_turns(stream):
    client = claude()
    messages = [{"role": "user", "content": QUESTION}]
    first, kinds = ask_claude(client, messages, stream)
    same([block.type for block in first.content], ["thinking", "text", "tool_use", "tool_use"])
    thought, said, *calls = first.content
    same((thought.thinking, thought.signature), ("Two places come to mind.", "c2lnbmVk"))
    same(said.text, "I look in two places. \U0001f30a")
    same([(call.id, call.name, call.input) for call in calls],
         [("c1", "look", {"where": "harbour"}), ("c2", "look", {"where": "office"})])
    same((first.id, first.model, first.role, first.stop_reason), ("msg_01", MODEL, "assistant", "tool_use"))
    same((first.usage.input_tokens, first.usage.output_tokens), (120, 45))
    same((first.usage.cache_read_input_tokens, first.usage.cache_creation_input_tokens), (30, 7))
    if stream:
        for kind in ["message_start", "thinking", "signature", "text", "input_json", "message_delta", "message_stop"]:
            assert kind in kinds, f"{kind} is not in {kinds}"
    messages.append({"role": "assistant", "content": first.content})
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": RESULTS[call.id]} for call in calls]})
    second, _ = ask_claude(client, messages, stream)
    same([block.text for block in second.content], ["It hangs on the wall."])
    same(second.stop_reason, "end_turn")
    messages.append({"role": "assistant", "content": second.content})
    messages.append({"role": "user", "content": [{"type": "text", "text": "And when is high water?"}]})
    third, _ = ask_claude(client, messages, stream)
    same(third.content[0].text, "Soon after six.")


def ask_gpt(client, messages, stream):
    """The content, the calls as they are sent back, why it ended, and the usage."""
    asked = dict(model=MODEL, messages=messages, tools=OPENAI_TOOLS)
    if not stream:
        raw = client.chat.completions.with_raw_response.create(**asked)
        same(raw.headers["steno-drift"], "none")
        answer = raw.parse()
        choice = answer.choices[0]
        calls = [call.model_dump() for call in choice.message.tool_calls or []]
        return choice.message.content, calls, choice.finish_reason, answer.usage
    content, calls, finish, usage = "", [], None, None
    for chunk in client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked):
        same((chunk.object, chunk.model), ("chat.completion.chunk", MODEL))
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for piece in choice.delta.tool_calls or []:
                if piece.index == len(calls):
                    calls.append({"id": piece.id, "type": piece.type,
                                  "function": {"name": piece.function.name, "arguments": ""}})
                calls[piece.index]["function"]["arguments"] += piece.function.arguments or ""
    return content, calls, finish, usage


def openai_turns(stream):
    client = gpt()
    messages = [{"role": "user", "content": QUESTION}]
    content, calls, finish, usage = ask_gpt(client, messages, stream)
    same((content, finish), ("I look in two places. \U0001f30a", "tool_calls"))
    same([(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls],
         [("c1", "look", {"where": "harbour"}), ("c2", "look", {"where": "office"})])
    same((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (157, 45, 202))
    same(usage.prompt_tokens_details.cached_tokens, 30)
    messages.append({"role": "assistant", "content": content, "tool_calls": calls})
    # In the order in which they were answered, which is not the order of the calls.
    messages += [{"role": "tool", "tool_call_id": id, "content": RESULTS[id]} for id in ["c2", "c1"]]
    content, calls, finish, _ = ask_gpt(client, messages, stream)
    same((content, calls, finish), ("It hangs on the wall.", [], "stop"))
    messages.append({"role": "assistant", "content": content})
    messages.append({"role": "user", "content": "And when is high water?"})
    content, *_ = ask_gpt(client, messages, stream)
    same(content, "Soon after six.")


def ask_responses(client, items, stream):
    """One answer, and the types of its events where it is streamed."""
    asked = dict(model=MODEL, input=items, tools=[{"type": "function", "name": "look", "parameters": LOOK, "strict": None}])
    if not stream:
        return client.responses.create(**asked), []
    with client.responses.stream(**asked) as events:
        kinds = [event.type for event in events]
        return events.get_final_response(), kinds


def responses_turns(stream):
    client = gpt()
    items = [{"role": "user", "content": QUESTION}]
    first, kinds = ask_responses(client, items, stream)
    same([item.type for item in first.output], ["reasoning", "message", "function_call", "function_call"])
    same(first.output[0].summary[0].text, "Two places come to mind.")
    same((first.output_text, first.status, first.model), ("I look in two places. \U0001f30a", "completed", MODEL))
    calls = first.output[2:]
    same([(call.call_id, call.name, json.loads(call.arguments)) for call in calls],
         [("c1", "look", {"where": "harbour"}), ("c2", "look", {"where": "office"})])
    same((first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens), (157, 45, 202))
    if stream:
        for kind in ["response.created", "response.output_text.delta", "response.function_call_arguments.done",
                     "response.completed"]:
            assert kind in kinds, f"{kind} is not in {kinds}"
    items += first.output
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": RESULTS[call.call_id]} for call in calls]
    second, _ = ask_responses(client, items, stream)
    same(second.output_text, "It hangs on the wall.")
    items += second.output
    items.append({"role": "user", "content": [{"type": "input_text", "text": "And when is high water?"}]})
    third, _ = ask_responses(client, items, stream)
    same(third.output_text, "Soon after six.")


def drifting():
    client = claude()
    messages = [{"role": "user", "content": QUESTION}]
    first = client.messages.create(model=MODEL, max_tokens=9, messages=messages)
    messages.append({"role": "assistant", "content": first.content})
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": "in the drawer"},
        {"type": "tool_result", "tool_use_id": "c2", "content": RESULTS["c2"]}]})
    raw = client.messages.with_raw_response.create(model="claude-other", max_tokens=9, messages=messages)
    same(raw.headers["steno-drift"], "2")
    same(raw.parse().content[0].text, "It hangs on the wall.")
    # The other client comes without anything that was said, and with something that was not.
    raw = gpt().chat.completions.with_raw_response.create(
        model=MODEL, messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}])
    same(raw.parse().choices[0].message.content, "Soon after six.")
    found = drift()
    whats = [(one["request"], one["what"]) for one in found["drift"]]
    same(whats[:2], [(2, "other_model"), (2, "result_changed")])
    same(found["drift"][1]["asked"], "in the drawer")
    assert {what for request, what in whats if request == 3} == {"changed", "missing"}, whats
    same((found["requests"], found["drifted"]), (3, 2))
    after_the_end(openai_error=410, anthropic_error=410)


def after_the_end(openai_error, anthropic_error):
    for stream in [False, True]:
        try:
            gpt().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "more"}], stream=stream)
            raise AssertionError("an answer after the end")
        except openai.APIStatusError as error:
            same((error.status_code, error.code), (openai_error, "steno_end"))
            assert "has ended" in error.message, error.message
        try:
            claude().messages.create(
                model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "more"}], stream=stream)
            raise AssertionError("an answer after the end")
        except anthropic.APIStatusError as error:
            same((error.status_code, error.body["error"]["type"]), (anthropic_error, "invalid_request_error"))


def strict():
    other = [{"role": "user", "content": "Where is the bus stop?"}]
    try:
        gpt().chat.completions.create(model=MODEL, messages=other)
        raise AssertionError("an answer to another question")
    except openai.ConflictError as error:
        same(error.code, "steno_drift")
        assert "tide table" in error.message and "bus stop" in error.message, error.message
    try:
        claude().messages.create(model=MODEL, max_tokens=9, messages=other)
        raise AssertionError("an answer to another question")
    except anthropic.ConflictError as error:
        same(error.body["type"], "error")
    # Neither client tried again by itself, and the tape has waited.
    same((drift()["requests"], drift()["given"]), (2, 0))
    openai_turns_first = gpt().chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}])
    same(openai_turns_first.choices[0].finish_reason, "tool_calls")


def beside():
    same([model.id for model in gpt().models.list()], [MODEL])
    same([model.id for model in claude().models.list()], [MODEL])
    same(gpt().models.retrieve(MODEL).id, MODEL)
    same(claude().models.retrieve(MODEL).id, MODEL)
    try:
        gpt().models.retrieve("nobody")
        raise AssertionError("a model that nobody is")
    except openai.NotFoundError:
        pass
    counted = claude().messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": QUESTION}])
    assert 3 <= counted.input_tokens <= 12, counted
    same((drift()["requests"], drift()["given"]), (0, 0))


def foreign():
    """A recording of another agent, with its own tools and ids, answered to each client until it is used up."""
    for number in range(drift()["answers"]):
        if number % 2 == 0:
            with claude().messages.stream(
                    model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "go"}]) as events:
                answer = events.get_final_message()
            assert answer.content, answer
            for block in answer.content:
                if block.type == "tool_use":
                    assert isinstance(block.input, dict) and block.id, block
        else:
            answer = gpt().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "go"}])
            message = answer.choices[0].message
            assert message.content or message.tool_calls, answer
            for call in message.tool_calls or []:
                assert isinstance(json.loads(call.function.arguments), dict) and call.id, call
    same(drift()["given"], drift()["answers"])


SCENARIOS = {
    "anthropic": lambda: anthropic_turns(False),
    "anthropic-stream": lambda: anthropic_turns(True),
    "openai": lambda: openai_turns(False),
    "openai-stream": lambda: openai_turns(True),
    "responses": lambda: responses_turns(False),
    "responses-stream": lambda: responses_turns(True),
    "drifting": drifting,
    "strict": strict,
    "beside": beside,
    "foreign": foreign,
}

for scenario, ADDRESS in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    try:
        SCENARIOS[scenario]()
    except BaseException:
        print("in the scenario", scenario, file=sys.stderr)
        raise
