"""The syntax of CEL: an expression becomes a tree of nodes, its macros expanded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.apiextensions.cel import macros
from slipway.embedded.apiextensions.cel.nodes import Call, Ident, ListNode, Literal, MapNode, Node, Select
from slipway.embedded.apiextensions.cel.tokens import RESERVED, MalformedError, Token, tokenized

if TYPE_CHECKING:
    from collections.abc import Callable

DEEPEST = 250
"""Expressions nested deeper than this are refused, as cel-go's parser does."""
_BEGINNINGS = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
"""What an expression may begin with, as the parser of cel-go says it."""
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")


def parsed(text: str) -> Node:
    """The tree of an expression."""
    parser = _Parser(tokenized(text))
    node = parser.expression()
    if parser.next.kind != "end":
        raise MalformedError(parser.next.position, f"Syntax error: mismatched input '{_shown(parser.next)}' expecting <EOF>")
    return node


class _Parser:
    """One token ahead, one method a rule of the grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def unexpected(self) -> MalformedError:
        return MalformedError(self.next.position, f"Syntax error: mismatched input '{_shown(self.next)}'")

    def _take(self) -> Token:
        token = self.next
        self._at += token.kind != "end"
        return token

    def _accept(self, *kinds: str) -> Token | None:
        return self._take() if self.next.kind in kinds else None

    def _expect(self, kind: str) -> Token:
        if self.next.kind != kind:
            what = (
                f"mismatched input '{_shown(self.next)}' expecting {{']', ','}}"
                if kind == "]"
                else f"missing '{kind}' at '{_shown(self.next)}'"
            )
            raise MalformedError(self.next.position, f"Syntax error: {what}")
        return self._take()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise MalformedError(self.next.position, f"expression recursion limit exceeded: {DEEPEST}")
        node = self._disjunction()
        if question := self._accept("?"):
            yes = self._disjunction()
            self._expect(":")
            node = Call(question.position, "_?_:_", None, [node, yes, self.expression()])
        self._depth -= 1
        return node

    def _disjunction(self) -> Node:
        return self._chain("||", self._conjunction)

    def _conjunction(self) -> Node:
        return self._chain("&&", self._relation)

    def _chain(self, operator: str, term: Callable[[], Node]) -> Node:
        terms, operators = [term()], []
        while token := self._accept(operator):
            operators.append(token)
            terms.append(term())
        return terms[0] if len(terms) == 1 else Call(operators[0].position, f"_{operator}_", None, terms)

    def _relation(self) -> Node:
        node = self._sum()
        while token := self._accept(*_RELATIONS):
            function = "@in" if token.kind == "in" else f"_{token.kind}_"
            node = Call(token.position, function, None, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node = self._product()
        while token := self._accept("+", "-"):
            node = Call(token.position, f"_{token.kind}_", None, [node, self._product()])
        return node

    def _product(self) -> Node:
        node = self._unary()
        while token := self._accept("*", "/", "%"):
            node = Call(token.position, f"_{token.kind}_", None, [node, self._unary()])
        return node

    def _unary(self) -> Node:
        if self.next.kind not in ("!", "-"):
            return self._member()
        first = self.next
        count = 0
        while self._accept(first.kind):
            count += 1
        number = self.next.value if self.next.kind == "literal" else None
        if first.kind == "-" and isinstance(number, (int, float)) and type(number) in (int, float):
            # The sign next to a number is part of it, so that the least integer can be written.
            self._take()
            count -= 1
            node = self._member_of(Literal(first.position, -number))
        else:
            node = self._member()
        return node if count % 2 == 0 else Call(first.position, f"{first.kind}_", None, [node])

    def _member(self) -> Node:
        return self._member_of(self._primary())

    def _member_of(self, node: Node) -> Node:
        if isinstance(node, Literal) and node.value == 2**63 and type(node.value) is int:
            raise MalformedError(node.position, "invalid int literal")
        while True:
            if dot := self._accept("."):
                optional = self._accept("?") is not None
                name = self._take()
                if name.kind not in ("name", "quoted"):
                    raise MalformedError(name.position, f"Syntax error: no viable alternative at input '.{_shown(name)}'")
                if not optional and name.kind == "name" and self.next.kind == "(":
                    opened = self._take()
                    arguments = self._arguments(")")
                    node = macros.expanded(opened.position, name.value, node, arguments)
                else:
                    node = Select(dot.position, node, name.value, optional=optional)
            elif opened_ := self._accept("["):
                optional = self._accept("?") is not None
                index = self.expression()
                self._expect("]")
                node = Call(opened_.position, "_[?_]" if optional else "_[_]", None, [node, index])
            elif self.next.kind == "{" and isinstance(node, (Ident, Select)):
                raise MalformedError(self.next.position, f"undeclared reference to '{node.name}' (in container '')")
            else:
                return node

    def _arguments(self, closing: str) -> list[Node]:
        arguments: list[Node] = []
        if self.next.kind == "end":
            expected = _BEGINNINGS.replace("'(', ", "'(', ')', ")
            raise MalformedError(self.next.position, f"Syntax error: mismatched input '<EOF>' expecting {expected}")
        while self.next.kind != closing:
            arguments.append(self.expression())
            if not self._accept(","):
                break
            if self.next.kind == closing:
                raise self.unexpected()
        self._expect(closing)
        return arguments

    def _primary(self) -> Node:
        token = self._take()
        # A leading dot says that no variable of a loop is meant; messages repeat it.
        dot = token.value if token.kind == "." else ""
        if dot:
            token = self._take()
            if token.kind != "name":
                raise MalformedError(token.position, f"Syntax error: mismatched input '{_shown(token)}' expecting IDENTIFIER")
        if token.kind == "literal":
            return Literal(token.position, token.value)
        if token.kind == "name":
            if token.value in RESERVED:
                raise MalformedError(token.position, f"reserved identifier: {token.value}")
            if opened := self._accept("("):
                return macros.expanded(opened.position, dot + token.value, None, self._arguments(")"))
            return Ident(token.position, dot + token.value)
        if token.kind == "(":
            node = self.expression()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list(token)
        if token.kind == "{":
            return self._map(token)
        fault = "extraneous" if self.next.kind in ("name", "literal", "(", "[", "{", "-", "!", ".") else "mismatched"
        raise MalformedError(token.position, f"Syntax error: {fault} input '{_shown(token)}' expecting {_BEGINNINGS}")

    def _list(self, opened: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self.next.kind != "]":
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._accept(","):
                break
        self._expect("]")
        return ListNode(opened.position, elements, frozenset(optional))

    def _map(self, opened: Token) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while self.next.kind != "}":
            optional = self._accept("?") is not None
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        return MapNode(opened.position, entries)


def _shown(token: Token) -> str:
    return str(token.value)
