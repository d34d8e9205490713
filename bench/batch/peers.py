"""A peer of `npm run bench batch -- --peers`: peers.py ENGINE FOLDER, with {"queries": [...]} on standard input.

$name in a query is the table of FOLDER/name.parquet, and read_lines(...) the lines of FOLDER/words.txt. Results go to
FOLDER/peer-N. Start-up is not counted. Prints {"wallMs", "cpuMs", "peakMb"} of itself and its children.
"""
import glob, json, os, re, sys, time


def processes():
    own, found = str(os.getpid()), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
            status = open(f"/proc/{name}/status").read()
        except OSError:
            continue
        peak = int((re.search(r"VmHWM:\s+(\d+)", status) or [0, 0])[1])
        found.append((name, stat[1], (int(stat[11]) + int(stat[12])) * 10, peak * 1024 / 1e6))
    mine = {own}
    for _ in found:
        mine |= {name for name, parent, _, _ in found if parent in mine}
    return [one for one in found if one[0] in mine]


def main(engine, folder):
    queries = json.load(sys.stdin)["queries"]
    tables = {os.path.basename(path)[:-8]: path for path in glob.glob(f"{folder}/*.parquet") if "raw-" not in path}
    plain = [re.sub(r"\$(\w+)", lambda found: f"t_{found[1]}", re.sub(r"read_lines\([^)]*\)", "$words", one)) for one in queries]
    if engine == "PySpark":
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "8g").config("spark.sql.shuffle.partitions", "8").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        for name, path in tables.items():
            spark.read.parquet(path).createOrReplaceTempView(f"t_{name}")
        if os.path.exists(f"{folder}/words.txt"):
            spark.read.text(f"{folder}/words.txt").withColumnRenamed("value", "line").createOrReplaceTempView("t_words")
        words = [one.replace("unnest(string_split(line, ' '))", "explode(split(line, ' '))") for one in plain]
        run = lambda sql, to: spark.sql(sql).write.mode("overwrite").parquet(to)
    else:
        import polars

        context = polars.SQLContext({f"t_{name}": polars.scan_parquet(path) for name, path in tables.items()})
        words = plain
        run = lambda sql, to: context.execute(sql).sink_parquet(to + ".parquet")
    before = sum(cpu for _, _, cpu, _ in processes())
    started = time.monotonic()
    for i, sql in enumerate(words):
        run(sql, f"{folder}/peer-{i}")
    wall = (time.monotonic() - started) * 1000
    now = processes()
    print(json.dumps({"wallMs": wall, "cpuMs": sum(cpu for _, _, cpu, _ in now) - before, "peakMb": sum(mb for *_, mb in now)}))


main(*sys.argv[1:])
