"""Official SDKs read what Streamkeeper writes.

usage: python sdk.py FOLDER-OF-BUILT-PROGRAMS

Each stream is served from a local HTTP server three times, and the provider's own SDK reads it: as it was recorded, behind
`streamkeeper observe --emit wire`, and behind the example `redact_word`, which replaces a word from the middle of the text. The second
must be the same bytes; the third must give the same text but for that word, and end the same way.

Reads the streams of examples/streams, and the recorded ones of ../shared/streams (or STREAMKEEPER_STREAMS) if they are there.
"""

import collections
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import anthropic
import openai
from google import genai

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPLACEMENT = "[redacted]"

# What an SDK made of a stream: the text of its deltas, the whole text where the SDK gives one, and the name of the error it raised.
Read = collections.namedtuple("Read", "text whole error")


class Server(http.server.ThreadingHTTPServer):
    """Serves one body, set by `body`, for every request."""

    daemon_threads = True
    body = b""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(self.server.body)))
                self.end_headers()
                self.wfile.write(self.server.body)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


def collecting(read):
    """Keeps the text that came before an error, and the error's name."""

    def run(url):
        deltas, whole, error = [], [], None
        try:
            read(url, deltas.append, whole.append)
        except Exception as raised:  # noqa: BLE001 - whatever an SDK raises is what we compare
            error = type(raised).__name__
        return Read("".join(deltas), "".join(whole) if whole else None, error)

    return run


def openai_client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


@collecting
def openai_chat(url, delta, _whole):
    for chunk in openai_client(url).chat.completions.create(model="m", messages=[], stream=True):
        for choice in chunk.choices or []:
            if choice.index == 0 and choice.delta and isinstance(choice.delta.content, str):
                delta(choice.delta.content)


@collecting
def openai_completions(url, delta, _whole):
    for chunk in openai_client(url).completions.create(model="m", prompt="", stream=True):
        for choice in chunk.choices or []:
            if choice.index == 0:
                delta(choice.text or "")


@collecting
def openai_responses(url, delta, whole):
    for event in openai_client(url).responses.create(model="m", input="", stream=True):
        if event.type == "response.output_text.delta":
            delta(event.delta)
        elif event.type in ("response.completed", "response.incomplete"):
            whole(event.response.output_text)


@collecting
def anthropic_messages(url, delta, whole):
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    with client.messages.stream(model="m", max_tokens=1, messages=[]) as stream:
        for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                delta(event.delta.text)
        for block in stream.get_final_message().content:
            if block.type == "text":
                whole(block.text)


@collecting
def gemini(url, delta, _whole):
    client = genai.Client(api_key="none", http_options={"base_url": url})
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        for candidate in (chunk.candidates or [])[:1]:
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.text and not part.thought:
                    delta(part.text)


SDKS = {
    "openai-chat": openai_chat,
    "openai-completions": openai_completions,
    "openai-responses": openai_responses,
    "anthropic-messages": anthropic_messages,
    "gemini": gemini,
}


def streams():
    """Path and format of every SSE stream that has an SDK."""
    folder = ROOT / "examples/streams"
    for line in (folder / "expected.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        yield folder / entry["path"], entry["format"]
    recorded = pathlib.Path(os.environ.get("STREAMKEEPER_STREAMS", ROOT.parent / "shared/streams"))
    if not (recorded / "TRUTH.jsonl").exists():
        print(f"NOT RUN: the recorded streams are not there ({recorded})")
        return
    for line in (recorded / "TRUTH.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        yield recorded / entry["path"], entry["wire"]


def word_in_the_middle(text):
    """The word nearest to the middle. A long one may span what no observer looks across, such as a citation."""
    words = list(re.finditer(r"\b\w{3,20}\b", text))
    return min(words, key=lambda m: abs(m.start() - len(text) // 2)).group() if words else None


def check(server, programs, path, fmt):
    """Returns what is wrong with one stream, and whether a word was replaced in it."""

    def read(body):
        server.body = body
        return SDKS[fmt](server.url)

    def run(program, *args):
        done = subprocess.run([programs / program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        if done.returncode not in (0, 2):  # 2: the stream itself failed, as some of these do
            raise AssertionError(f"{program} ended with {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    original = path.read_bytes()
    try:
        before = read(original)
        passed = run("streamkeeper", "observe", "--emit", "wire", "--format", fmt, path)
        if not original.rstrip(b" ").endswith((b"\n", b"}")):
            # It breaks off inside an event: it gets an end that says so, and is not compared any further.
            if read(passed).text != before.text:
                return "another text after the end was added", False
            return None, False
        if passed != original:
            return "watchers alone changed the bytes", False
        word = word_in_the_middle(before.text)
        if word is None:
            return None, False
        changed = run("examples/redact_word", path, word)
        after = read(changed)
    except AssertionError as failure:
        return str(failure), False
    without = lambda text: text and text.replace(word, REPLACEMENT)  # noqa: E731
    expected = Read(without(before.text), without(before.whole), before.error)
    if after != expected:
        return f"without {word!r} the SDK reads {after}\n    expected {expected}", True
    return None, True


def main():
    programs = pathlib.Path(sys.argv[1])
    server = Server()
    passed = failed = replaced = 0
    for path, fmt in streams():
        if path.suffix != ".sse" or fmt not in SDKS:
            continue
        wrong, had_word = check(server, programs, path, fmt)
        replaced += had_word
        if wrong:
            failed += 1
            print(f"FAILED {path.name} ({fmt}): {wrong}")
        else:
            passed += 1
    print(f"{replaced} streams had a word replaced in the middle")
    print(f"{passed} passed, {failed} failed")
    if failed or not replaced:
        sys.exit(1)


if __name__ == "__main__":
    main()
