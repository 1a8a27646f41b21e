# ruff: noqa: E501 - scripts stand on one line
"""The simulated shell does what the real one does: every script is run by both, in the same files, and must leave the same behind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from slipway.simulation.host import coreutils
from slipway.simulation.host.files import File, FileTree
from slipway.simulation.shell.interpreter import Shell
from slipway.simulation.shell.process import Process

SCRIPTS = {
    "words and quotes": """x='a  b'; echo $x "$x" '$x' \\$x a"b"'c'""",
    "and, or, not": "true && echo 1 || echo 2; false && echo 3 || echo 4; ! false && echo 5; ! true || echo 6",
    "if": "if [ -e no ]; then echo a; elif [ 1 -eq 1 ]; then echo b; else echo c; fi",
    "for over words and arguments": 'for x in a b "c d"; do printf "<%s>" "$x"; done; set -- 1 "2 3"; for y; do echo "$y"; done; for z in "$@"; do echo $z; done',
    "while and arithmetic": "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); echo $i; done; until [ $i -eq 0 ]; do i=$((i-1)); done; echo $((2*3+i))",
    "case": 'for x in v1.34.1 abc "" -h; do case "$x" in v*.34.*) echo minor;; a*|b*) echo letters;; "") echo empty;; *) echo other;; esac; done',
    "break and continue": "for x in 1 2 3 4; do [ $x = 2 ] && continue; [ $x = 4 ] && break; echo $x; done",
    "functions": 'f() { echo "$1-$#"; return 3; }; f a b; echo $?; g() { x=1; }; g; echo $x',
    "substitution": 'echo "$(echo a; echo b)" $(echo c   d) `echo e`; x=$(false); echo $?',
    "parameters": "unset x; echo ${x:-d} ${x-e} ${x:+f}; x=/a/b.tar.gz; echo ${x##*/} ${x%.*} ${x%%.*} ${x#/} ${#x}; echo ${y:=set} $y",
    "set -e ends": "set -e; echo 1; false; echo 2",
    "set -e spares conditions": "set -e; if false; then :; fi; false || echo 1; false && true; ! true; echo 2; x=$(false) || echo 3; (exit 3) || echo 4",
    "set -u": "set -u; echo a; echo $nothing; echo b",
    "a failing assignment": "set -e; x=$(exit 4); echo no",
    "exit in a subshell": "(exit 5); echo $?; { echo a; }; (cd /; x=1); echo ${x:-unset}",
    "redirections": "echo a >f; echo b >>f; cat <f; cat f nothing 2>/dev/null; echo $?; { echo c; echo d >&2; } >g 2>&1; cat g; >h; [ -e h ] && echo h",
    "here-documents": "x=1\ncat <<EOF\n$x \\$x $(echo 2)\nEOF\ncat <<'EOF' >f\n$x\nEOF\ncat f\n\tcat <<-END\n\tx\n\tEND\n",
    "pipes": "printf 'b\\na\\nb\\n' | sort -u | while read -r x; do echo \"<$x>\"; done; echo a | grep -q b || echo none; printf 'x:y\\n' | cut -d: -f2",
    "unknown program": "no-such-program; echo $?",
    "redirection to nowhere": "echo a >no/such; echo $?",
    "files": "mkdir -p a/b; echo x >a/b/c; mv a/b/c a/d; cat a/d; cp -r a e; ls e; rm -rf a; [ -d a ] || echo gone; rm nothing; echo $?; rm -f nothing; echo $?",
    "mv into a folder and over a file": "mkdir d; echo 1 >f; echo 2 >g; mv f d; mv -f g d/f; cat d/f; ls d; mv -T d e; ls e; mv no e; echo $?",
    "links": "mkdir d; echo 1 >d/f; ln -s d l; cat l/f; [ -L l ] && readlink l; rm l; ls; ln -sfn nowhere l; [ -e l ] || echo dangling; [ -h l ] && echo link",
    "globs": "mkdir d; for x in a b .c; do echo $x >d/$x; done; echo d/* d/no* 'd/*'; for f in d/*; do [ -e \"$f\" ] || continue; echo $f; done",
    "test": '[ -n "" ] || echo 1; [ -z "" ] && echo 2; [ a != b ] && echo 3; test 3 -gt 2 -a 1 -lt 2 && echo 4; [ ! -e no ] && echo 5; [ "$x" ] || echo 6; [ a = a -o b = c ]; echo $?',
    "grep and sed": "printf 'inet 10.0.0.1/24\\ninet 10.0.0.12/32\\n' >f; grep -c inet f; grep -F 10.0.0.1/ f; grep -oE '[0-9]+/[0-9]+' f; sed -n 's/.*inet \\([0-9.]*\\).*/\\1/p' f; sed 's/inet/x/' f | head -n 1; grep -v 12 f; grep -x inet f; echo $?",
    "sort -V": "printf '10\\n9\\n100\\n' | sort -V | tail -n 1; printf '1\\n2\\n' | head -1 | wc -l | tr -d ' '",
    "trap": "trap 'echo bye' EXIT; echo hi; exit 4",
    "eval and exec": 'x="echo a; echo b"; eval "$x"; exec echo c; echo never',
    "shift": 'set -- a b c; shift; echo "$*" $#; shift 2; echo $#',
    "comments and continued lines": "# a\necho a \\\n  b # c\necho 'd#e' f#g",
    "command -v": "command -v sh >/dev/null && echo yes; command -v no-such-program || echo no",
    "newlines in lists": "true &&\n  echo a ||\n  echo b\nif true\nthen\n  echo c\nfi",
    "a file's checksum": "printf abc | sha256sum; printf abc >f; sha256sum f | cut -d' ' -f1",
    "find": "mkdir -p d/e; echo >d/f; echo >d/e/g; find d -type f | sort; find d -maxdepth 1 -name e; find d -name g -delete; find d | sort",
    "printf": 'printf "%s=%s\\n" a 1 b 2; printf "%03d|%5s|%-3s|\\n" 7 x y; printf "no newline"; echo; printf "%b" "a\\tb\\n"',
    "read": "printf 'a b c\\nd\\n' | { read x y; echo \"$x|$y\"; read z; echo $z; read q || echo end; }",
    "quotes within braces": 'x="a b"; echo "${y:-"$x"}" "${x%" b"}"; echo ${n:-\'c d\'}',
    "patterns within quotes": 'x=/a/b/c; mkdir -p "d${x%/*}"; ls d/a; echo "${x%/*}" "${x##*/}" "${x#/a}"; y="a*b"; echo "${y%\\*b}" "${y%"*b"}"',
    "negative cases": "case a in b) echo no;; esac; echo $?; for x in; do echo no; done; echo $?",
    "group with redirect": "{ echo a; if true; then echo b; fi; } | sort -r; (echo x; echo y >&2) 2>/dev/null",
    "exec for the streams": "exec 2>&1; echo a >&2; cat nothing | tail -c 1; f() { echo b >&2; }; x=$(f); echo [$x]",
    "folders": 'echo "$PWD"; mkdir a; cd a; sh -c "echo \\$PWD"; (cd /; echo "$PWD $OLDPWD"); cd ..; echo "$PWD $OLDPWD"; pwd',
    "environment": "X=1 sh -c 'echo $X'; export Y=2; sh -c 'echo $Y $0 $1' name arg; Z=3; sh -c 'echo ${Z:-none}'",
}


class System:
    def __init__(self) -> None:
        self.tree = FileTree()

    def program(self, name: str) -> Callable[[Process], int] | None:
        if name == "sh":
            return self._shell
        return partial(coreutils.run, self.tree) if name in coreutils.PROGRAMS else None

    def _shell(self, process: Process) -> int:
        _, script, *rest = process.arguments
        return Shell(self, process, name=rest[0] if rest else "sh", arguments=rest[1:]).run(script)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_what_it_does_in_the_real_shell(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    home = str(tmp_path)
    real = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=False, env={"PATH": "/usr/bin:/bin", "HOME": home})
    system = System()
    system.tree.make_dirs(home)
    process = Process(["sh"], {"HOME": home}, folder=home)
    code = Shell(system, process).run(script)
    assert (code, process.out.decode()) == (real.returncode, real.stdout.decode()), process.err.decode()
    assert _files(system.tree, home) == {
        str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    }


def _files(tree: FileTree, home: str) -> dict[str, bytes]:
    return {path.removeprefix(f"{home}/"): entry.content for path, entry in tree.walk(home) if isinstance(entry, File)}


@pytest.mark.parametrize("script", ["sleep 1 & wait", "echo $((2**3))", "echo ${x/a/b}", "awk '{print}'", "ls -t"])
def test_what_is_not_simulated_is_refused_in_words(script: str) -> None:
    process = Process(["sh"], {})
    assert Shell(System(), process).run(script) != 0
    assert b"simulated" in process.err or b"not found" in process.err
