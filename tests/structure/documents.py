#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the documents to the rules that CONTRIBUTING.md gives them.

    documents.py ROOT

- A table's cell has at most 30 words.
- README.md has at most 700 words.
- Interrogative pronouns that hide the subject of a sentence (WORDS) are at most 3 of 1,000 words,
  counted over README.md, ARCHITECTURE.md, CONTRIBUTING.md, docs and man together.
- Outside tables and code, a line has at most 100 columns.
- A file or folder of this tree that a document names exists, and so does the heading that a link
  points to.

docs/results is left out: the benchmarks write it. Prints one line a violation and exits 1.
"""

import os
import re
import sys

MAX_CELL_WORDS = 30
MAX_README_WORDS = 700
MAX_COLUMNS = 100
MAX_PER_THOUSAND = 3

WORDS = re.compile(r"\b(?:who|whom|whoever|what|whatever|he|his|him|whose)\b", re.I)
FOLDERS = ("api", "bench", "docs", "man", "packaging", "src", "tests", "tools")
NAMED = re.compile(r"`((?:%s)/[\w./-]*)`" % "|".join(FOLDERS))
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```")
# Documents that the build writes; they are in no checkout.
GENERATED = ("docs/opencl-calls.md", "docs/results")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def documents(root):
    """Paths of all documents relative to root, sorted: Markdown first, then man pages."""
    found = [name for name in os.listdir(root) if name.endswith(".md")]
    for where, folders, names in os.walk(os.path.join(root, "docs")):
        if where == os.path.join(root, "docs"):
            folders[:] = [name for name in folders if name != "results"]
        found += [os.path.relpath(os.path.join(where, name), root)
                  for name in names if name.endswith(".md")]
    found.sort()
    pages = os.path.join(root, "man")
    if os.path.isdir(pages):
        found += [os.path.join("man", name) for name in sorted(os.listdir(pages))
                  if re.search(r"\.[1-8]$", name)]
    return found


def prose_lines(text):
    """Number and text of each line that is not in a fenced block."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def anchors(text):
    """The names that GitHub gives to a document's headings."""
    found = set()
    for _, line in prose_lines(text):
        if line.startswith("#"):
            heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found


def check_layout(path, text):
    problems = []
    for number, line in prose_lines(text):
        if line.lstrip().startswith("|"):
            for cell in line.replace(r"\|", "/").strip().strip("|").split("|"):
                words = len(cell.split())
                if words > MAX_CELL_WORDS:
                    problems.append("{}:{}: a cell of {} words: {}...".format(
                        path, number, words, " ".join(cell.split()[:6])))
        elif len(line) > MAX_COLUMNS:
            problems.append("{}:{}: {} columns".format(path, number, len(line)))
    return problems


def check_names(root, path, text):
    problems = []
    for number, line in prose_lines(text):
        for name in NAMED.findall(line):
            if not name.startswith(GENERATED) and not os.path.exists(os.path.join(root, name)):
                problems.append("{}:{}: there is no {}".format(path, number, name))
        for link in LINK.findall(line):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if target.startswith(GENERATED):
                continue
            if not os.path.exists(os.path.join(root, target)):
                problems.append("{}:{}: there is no {}".format(path, number, target))
            elif anchor and anchor not in anchors(read(os.path.join(root, target))):
                problems.append("{}:{}: {} has no heading #{}".format(path, number, target, anchor))
    return problems


def check(root):
    problems = []
    n_words = n_hidden = 0
    for path in documents(root):
        text = read(os.path.join(root, path))
        n_words += len(re.findall(r"[A-Za-z']+", text))
        n_hidden += len(WORDS.findall(text))
        if path.endswith(".md"):
            problems += check_layout(path, text) + check_names(root, path, text)
        if path == "README.md" and len(text.split()) > MAX_README_WORDS:
            problems.append("README.md: {} words; at most {}".format(
                len(text.split()), MAX_README_WORDS))
    if n_hidden * 1000 > n_words * MAX_PER_THOUSAND:
        problems.append("who, what, he and their like: {:.1f} of 1,000 words; at most {}".format(
            n_hidden * 1000 / n_words, MAX_PER_THOUSAND))
    return problems


def main():
    problems = check(sys.argv[1])
    for problem in problems:
        print(problem)
    print("documents: {} violation{}".format(len(problems), "" if len(problems) == 1 else "s"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
