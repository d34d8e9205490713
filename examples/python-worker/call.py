"""One task in a process of its own: can be stopped at any time, and takes nobody else along when it dies.

Reads the spec as one line of JSON, calls the function of the tasks file that it names, and writes lines of JSON: a
`step` for everything that a generator yields, then a `result` or an `error`. What the function prints goes to stderr.
"""

import importlib.util
import inspect
import json
import os
import sys
import threading


def main(tasks_file):
    say = answers()
    try:
        spec = json.loads(sys.stdin.buffer.readline())
        threading.Thread(target=end_with_parent, daemon=True).start()
        name, args = spec["call"], spec.get("args", [])
        function = functions_of(tasks_file).get(name)
        if function is None:
            return say({"error": f"there is no function {name}"})
        result = function(**args) if isinstance(args, dict) else function(*args)
        if inspect.isgenerator(result):
            result = finished(result, say)
        say({"result": result})
    except MemoryError:
        say({"error": "out of memory", "reason": "FAIL_REASON_OUT_OF_MEMORY"})
    except Exception as error:  # whatever the function did wrong is its own failure, and told as such
        say({"error": f"{type(error).__name__}: {error}"})


def answers():
    """Keeps the real stdout for the answers, and sends what others print to stderr."""
    real = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer):
        real.write(json.dumps(answer) + "\n")
        real.flush()

    return say


def end_with_parent():
    """The worker keeps this process's stdin open for as long as it lives."""
    sys.stdin.buffer.read()
    os._exit(1)


def functions_of(path):
    """Those that the file itself defines: an import does not open the door to a whole module."""
    found = importlib.util.spec_from_file_location("tasks", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    functions = inspect.getmembers(module, inspect.isfunction)
    return {name: f for name, f in functions if f.__module__ == "tasks" and not name.startswith("_")}


def finished(generator, say):
    while True:
        try:
            say({"step": str(next(generator))})
        except StopIteration as end:
            return end.value


if __name__ == "__main__":
    main(sys.argv[1])
