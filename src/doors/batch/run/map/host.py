"""The program that calls a user's Python function: as host.ts, with Python's own library alone."""

import base64
import datetime
import decimal
import importlib.util
import json
import math
import os
import resource
import sys
import threading


def decoder(kind):
    if kind in ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"):
        return int
    if kind.startswith("DECIMAL"):
        return decimal.Decimal
    if kind in ("DOUBLE", "FLOAT"):
        return float
    if kind == "BLOB":
        return base64.b64decode
    if kind == "DATE":
        return datetime.date.fromisoformat
    if kind.startswith("TIMESTAMP"):
        return lambda text: datetime.datetime.fromisoformat(text + (":00" if kind.endswith("ZONE") else ""))
    return None


def decode(lists, columns):
    decoded = {}
    for column, values in zip(columns, lists):
        change = decoder(column["type"])
        decoded[column["name"]] = values if change is None else [None if v is None else change(v) for v in values]
    return decoded


def plain(value):
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return str(value)
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return "-0.0"
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (decimal.Decimal, datetime.date, datetime.datetime, datetime.time)):
        return str(value)
    return value.item() if hasattr(value, "item") else value


def rows_of(returned, schema):
    names = [column["name"] for column in schema]
    if isinstance(returned, list):
        return [{name: plain(row.get(name)) for name in names} for row in returned]
    if not isinstance(returned, dict):
        raise TypeError("it must return a dict of lists, or a list of rows")
    lists = []
    for name in names:
        if name not in returned:
            raise TypeError("it returned no list for the column " + name)
        lists.append(list(returned[name]))
    for name, values in zip(names, lists):
        if len(values) != len(lists[0]):
            raise TypeError("the column %s is not as long as %s" % (name, names[0]))
    return [{name: plain(value) for name, value in zip(names, row)} for row in zip(*lists)]


def end(outcome):
    with open("outcome.json", "w", encoding="utf-8") as file:
        json.dump(outcome, file)


def too_long(batch_ms):
    end({"failed": "one call took more than %d ms" % batch_ms})
    os._exit(0)


def main():
    with open("call.json", encoding="utf-8") as file:
        call = json.load(file)
    resource.setrlimit(resource.RLIMIT_AS, (call["memoryBytes"], call["memoryBytes"]))
    spec = importlib.util.spec_from_file_location("module", os.path.join(os.getcwd(), "module.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    called = getattr(module, call["export"], None)
    if not callable(called):
        raise TypeError("the module has no function " + call["export"])
    skipped = 0

    def apply(lists):
        timer = threading.Timer(call["batchMs"] / 1000, too_long, [call["batchMs"]])
        timer.daemon = True
        timer.start()
        try:
            return rows_of(called(decode(lists, call["columns"]), call["params"]), call["schema"])
        finally:
            timer.cancel()

    def isolate(lists):
        nonlocal skipped
        rows = len(lists[0]) if lists else 0
        try:
            return apply(lists)
        except MemoryError:
            raise
        except Exception:
            if call["skipMax"] == 0:
                raise
            if rows <= 1:
                skipped += 1
                if skipped > call["skipMax"]:
                    raise
                return []
            half = rows // 2
            return isolate([v[:half] for v in lists]) + isolate([v[half:] for v in lists])

    with open("in.jsonl", encoding="utf-8") as batches, open("out.jsonl", "w", encoding="utf-8") as out:
        for line in batches:
            for row in isolate(json.loads(line)):
                out.write(json.dumps(row) + "\n")
    end({"skipped": skipped})


# All that a function prints goes to one place, in the order in which it was printed.
os.dup2(2, 1)
sys.stdout = sys.stderr
try:
    main()
except MemoryError:
    end({"outOfMemory": True})
except BaseException as error:
    end({"failed": ("%s: %s" % (type(error).__name__, error))[:2000]})
sys.stderr.flush()
os._exit(0)
