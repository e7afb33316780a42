"""What the tests of a ctest list run: ctest --show-only=json-v1 | builds_of.py CTestTestfile.cmake FOLDER "BUILD [TARGET ...]" ...

Prints a line for each of these builds that a test names a file of: the build and the programs, or where a test wants more than programs the line as it was given."""
import json
import re
import sys

file, folder, *lines = sys.argv[1:]
given = {line.split()[0]: line for line in lines}
# The list has no command of a program that is not there yet; the file has.
commands = {m[1]: re.findall(r'"([^"]*)"', m[2]) for m in re.finditer(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", open(file).read(), re.M)}
wanted = {}
listed = sys.stdin.read()
if not listed.startswith("{"):  # ctest says there what it cannot read, such as an expression of more than nine groups
    sys.exit("dev: ctest cannot read the expression after -R: " + listed.partition("\n")[0])
for test in json.loads(listed)["tests"]:
    for word in commands[test["name"]]:
        at = re.match(re.escape(folder) + r"/([^/]+)(?:/(.*))?$", word)
        if at and at[1] in given:
            wanted.setdefault(at[1], set()).add(at[2] if re.search(r"(_test|_fuzz|/example_\w+|/skua-bench)$", at[2] or "") else "")
for build, files in wanted.items():
    print(given[build] if "" in files else " ".join([build, *sorted(files)]))
