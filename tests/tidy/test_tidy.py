"""The house is tidy; and each rule is shown to find an offender, so that none has gone blind."""

from __future__ import annotations

import pytest

from tests.tidy import rules
from tests.tidy.rules import Rule, Source

PRODUCT = "src/astraflow/core/runs/states.py"
HEADER = "from __future__ import annotations\n"
TEST = "tests/unit/test_x.py"

OFFENDERS: list[tuple[Rule, str, str]] = [
    (rules.module_too_long, PRODUCT, "x = 1\n" * 601),
    (rules.function_too_long, PRODUCT, "def f():\n" + "    x = 1\n" * 70),
    (
        rules.nested_too_deep,
        PRODUCT,
        "def f(a):\n"
        "    for b in a:\n"
        "        if b:\n"
        "            while b:\n"
        "                try:\n"
        "                    pass\n"
        "                except ValueError:\n"
        "                    if b:\n"
        "                        return\n",
    ),
    (rules.module_with_no_meaning, "src/astraflow/core/runs/string_utils.py", ""),
    (rules.unfinished, PRODUCT, f"# {rules.MARKERS[0]}: later\n"),
    (rules.prints, PRODUCT, "print(1)\n"),
    (rules.reads_a_clock, PRODUCT, "import time\nx = time.monotonic()\n"),
    (rules.catches_everything, PRODUCT, "try:\n    pass\nexcept Exception:\n    pass\n"),
    (rules.catches_everything, PRODUCT, "try:\n    pass\nexcept:\n    pass\n"),
    (rules.asserts_nothing, TEST, "assert True\n"),
    (rules.leaves_tests_out, TEST, "@pytest.mark.skip\ndef test_x(): ...\n"),
    (rules.leaves_tests_out, TEST, "pytest.skip('not today')\n"),
    (rules.names_a_registry, "requirements/x.txt", f"--index-url https://{rules.HOSTS[0]}/simple"),
    (rules.names_a_foreign_path, "docs/x.md", f"see {rules.FOREIGN_PATHS[0]}main"),
    (rules.leads_nowhere, "docs/x.md", "see [it](no-such-page.md)"),
    (rules.leads_nowhere, "docs/x.md", "tested in `tests/no_such_folder`"),
    (rules.lacks_future_annotations, TEST, "import re\n"),
    (rules.lacks_exports, "src/astraflow/x/__init__.py", "from a import b\n"),
    (rules.unknown_code, PRODUCT, "x = 'E.SESSION.NO_SUCH_THING'\n"),
    (rules.unknown_code, PRODUCT, "x = 'E.AUTH'\n"),
    (rules.unknown_code, "docs/x.md", "answered with `E.NO_SUCH_THING`.\n"),
    (rules.runs_a_loop, TEST, "def test_x():\n    asyncio.run(main())\n"),
    (rules.starts_the_product, TEST, "run([sys.executable, '-m', 'astraflow', 'worker'])\n"),
]
INNOCENT: list[tuple[Rule, str, str]] = [
    (rules.module_too_long, PRODUCT, "x = 1\n" * 600),
    (rules.function_too_long, PRODUCT, "def f():\n" + "    x = 1\n" * 69),
    (
        rules.nested_too_deep,
        PRODUCT,
        "def f(a):\n    if a:\n        pass\n" + "    elif a: pass\n" * 9,
    ),
    (rules.reads_a_clock, rules.CLOCK, "import time\nx = time.monotonic()\n"),
    (rules.leads_nowhere, "docs/x.md", "[a](../README.md#x) [b](https://a.b/c) `tests/tidy`"),
    (rules.lacks_future_annotations, "tests/x/__init__.py", '"""Only words."""\n'),
    (rules.lacks_exports, "src/astraflow/x/__init__.py", '"""Only words."""\n'),
    (rules.unknown_code, PRODUCT, "x = 'E.SESSION.DENIED'\n"),
    (rules.unknown_code, PRODUCT, "x = 'E.AUTH.'\n"),
    (rules.unknown_code, "docs/x.md", "`E.SESSION.*`, `E.PKG.…`, E.INTERNAL.\n"),
    (rules.runs_a_loop, "tests/x.py", "if __name__ == '__main__':\n    asyncio.run(main())\n"),
]


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return rules.tracked()


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_house_is_tidy(rule: Rule, sources: list[Source]) -> None:
    found = [f"{source.name}: {wrong}" for source in sources for wrong in rule(source)]
    assert not found, "\n".join(found)


def test_the_rules_see_the_whole_house(sources: list[Source]) -> None:
    names = {source.name for source in sources}
    assert {"README.md", "Makefile", "src/astraflow/core/errors.py", "tests/tidy/rules.py"} <= names


@pytest.mark.parametrize(
    ("rule", "name", "text"), OFFENDERS, ids=[row[0].__name__ for row in OFFENDERS]
)
def test_a_rule_finds_its_offender(rule: Rule, name: str, text: str) -> None:
    assert rule(Source(name, text))


@pytest.mark.parametrize(
    ("rule", "name", "text"), INNOCENT, ids=[row[0].__name__ for row in INNOCENT]
)
def test_a_rule_leaves_the_innocent_alone(rule: Rule, name: str, text: str) -> None:
    assert rule(Source(name, text)) == []


def test_every_rule_has_an_offender() -> None:
    assert {rule for rule, _, _ in OFFENDERS} == set(rules.RULES)
