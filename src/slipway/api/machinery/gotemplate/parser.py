"""From the text of a template to its parts: one tree for the text itself and one for each ``define`` and ``block`` in it."""

from __future__ import annotations

from slipway.api.machinery.gotemplate import limits, numbers
from slipway.api.machinery.gotemplate.errors import TemplateError, shortened
from slipway.api.machinery.gotemplate.functions import FUNCTIONS
from slipway.api.machinery.gotemplate.lexer import Item, Lexer, Word
from slipway.api.machinery.gotemplate.nodes import (
    Action,
    Bool,
    Branch,
    Break,
    Chain,
    Command,
    Continue,
    Dot,
    Else,
    End,
    Field,
    Identifier,
    Invocation,
    List,
    Nil,
    Node,
    Number,
    Pipe,
    String,
    Text,
    Variable,
    is_empty,
)
from slipway.api.machinery.gotemplate.quoting import quote, unquote

_OPERANDS = {
    Word.BOOL,
    Word.CHARACTER_CONSTANT,
    Word.COMPLEX,
    Word.DOT,
    Word.FIELD,
    Word.IDENTIFIER,
    Word.NUMBER,
    Word.NIL,
    Word.RAW_STRING,
    Word.STRING,
    Word.VARIABLE,
    Word.LEFT_PARENTHESIS,
}
_CONTROLS = {Word.IF: "if", Word.RANGE: "range", Word.WITH: "with"}


def parse(name: str, text: str, deadline: float | None = None) -> dict[str, List]:
    """The trees by name, or TemplateError."""
    trees = _Trees()
    _Parser(name, name, Lexer(text, deadline), trees).top_level()
    return trees.by_name


class _Trees:
    """What was parsed; ``filled`` are the names of templates that are more than white space."""

    def __init__(self) -> None:
        self.by_name: dict[str, List] = {}
        self.filled: set[str] = set()

    def add(self, name: str, tree: List) -> bool:
        """Whether it could be added: the last that is no white space counts, and there may be only one."""
        if is_empty(tree):
            if name not in self.filled:
                self.by_name[name] = tree
            return True
        if name in self.filled:
            return False
        self.filled.add(name)
        self.by_name[name] = tree
        return True


class _Parser:
    """Parses one tree.  A ``define`` or ``block`` gets a parser of its own on the same lexer."""

    def __init__(self, name: str, source: str, lexer: Lexer, trees: _Trees, depth: int = 0) -> None:
        self._name, self._source, self._lexer, self._trees = name, source, lexer, trees
        # Words that were read and put back, the next one last; errors name the line of the newest word.
        self._pending: list[Item] = []
        self._newest = Item(Word.EOF, 0, "", 0)
        # The variables of the text itself, and of each control structure that is open.
        self._scopes = [{"$"}]
        self._action_line = 0
        self._ranges = 0
        self._depth = depth

    # Words.

    def _next(self) -> Item:
        if self._pending:
            return self._pending.pop()
        self._newest = self._lexer.next_item()
        return self._newest

    def _put_back(self, *items: Item) -> None:
        """Items in the order in which they were read."""
        self._pending.extend(reversed(items))

    def _peek(self) -> Item:
        item = self._next()
        self._put_back(item)
        return item

    def _next_word(self) -> Item:
        while (item := self._next()).word is Word.SPACE:
            pass
        return item

    def _peek_word(self) -> Item:
        item = self._next_word()
        self._put_back(item)
        return item

    def _failure(self, message: str) -> TemplateError:
        line = self._newest.line
        return TemplateError(f"template: {self._source}:{line}: {shortened(message)}", line)

    def _unexpected(self, item: Item, context: str) -> TemplateError:
        if item.word is not Word.ERROR:
            return self._failure(f"unexpected {item} in {context}")
        started = ""
        if self._action_line not in (0, item.line):
            started = f"{'' if item.text.endswith(' action') else ' in action'} started at {self._source}:{self._action_line}"
        return self._failure(f"{item}{started}")

    def _expect(self, context: str, *words: Word) -> Item:
        item = self._next_word()
        if item.word not in words:
            raise self._unexpected(item, context)
        return item

    def _enter(self) -> None:
        if self._depth >= limits.NESTING:
            raise self._failure("max expression depth exceeded")
        self._depth += 1

    def _add(self, tree: List) -> None:
        if not self._trees.add(self._name, tree):
            raise self._failure(f"template: multiple definition of template {quote(self._name)}")

    # Lists.

    def top_level(self) -> None:
        tree = List(self._peek().position)
        while self._peek().word is not Word.EOF:
            if self._peek().word is Word.LEFT_DELIMITER:
                delimiter, following = self._next(), self._next_word()
                if following.word is Word.DEFINE:
                    _Parser("", self._source, self._lexer, self._trees, self._depth)._definition()
                    continue
                self._put_back(delimiter, following)
            node = self._text_or_action()
            if isinstance(node, (End, Else)):
                raise self._failure(f"unexpected {node}")
            tree.nodes.append(node)
        self._add(tree)

    def _definition(self) -> None:
        context = "define clause"
        self._name = self._unquoted(self._expect(context, Word.STRING, Word.RAW_STRING))
        self._expect(context, Word.RIGHT_DELIMITER)
        tree, end = self._list()
        if not isinstance(end, End):
            raise self._failure(f"unexpected {end} in {context}")
        self._add(tree)

    def _list(self) -> tuple[List, Node]:
        """What stands before the next ``end`` or ``else``, and that one."""
        tree = List(self._peek_word().position)
        self._enter()
        while self._peek_word().word is not Word.EOF:
            node = self._text_or_action()
            if isinstance(node, (End, Else)):
                self._depth -= 1
                return tree, node
            tree.nodes.append(node)
        raise self._failure("unexpected EOF")

    def _text_or_action(self) -> Node:
        item = self._next_word()
        if item.word is Word.TEXT:
            return Text(item.position, item.text)
        if item.word is not Word.LEFT_DELIMITER:
            raise self._unexpected(item, "input")
        self._action_line = item.line
        node = self._action()
        self._action_line = 0
        return node

    def _action(self) -> Node:
        item = self._next_word()
        if item.word in _CONTROLS:
            return self._control(_CONTROLS[item.word])
        if item.word is Word.END:
            return End(self._expect("end", Word.RIGHT_DELIMITER).position)
        if item.word is Word.ELSE:
            return self._else()
        if item.word is Word.TEMPLATE:
            return self._template()
        if item.word is Word.BLOCK:
            return self._block()
        if item.word in (Word.BREAK, Word.CONTINUE):
            return self._leave_range(item)
        self._put_back(item)
        return Action(item.position, self._pipeline("command", Word.RIGHT_DELIMITER))

    # Control structures.

    def _leave_range(self, item: Item) -> Node:
        keyword = f"{{{{{item.text}}}}}"
        self._expect(keyword, Word.RIGHT_DELIMITER)
        if self._ranges == 0:
            raise self._failure(f"{keyword} outside {{{{range}}}}")
        return Break(item.position) if item.word is Word.BREAK else Continue(item.position)

    def _else(self) -> Else:
        following = self._peek_word()
        if following.word in (Word.IF, Word.WITH):
            return Else(following.position)
        return Else(self._expect("else", Word.RIGHT_DELIMITER).position)

    def _control(self, keyword: str) -> Branch:
        """An ``if``, ``with`` or ``range`` up to its ``end``; each ``else if`` is a branch in the else of the one before."""
        self._scopes.append(set())
        first, end = self._branch(keyword)
        last = first
        while isinstance(end, Else):
            following = self._peek().word
            if (keyword, following) in (("if", Word.IF), ("with", Word.WITH)):
                self._next()
                chained, next_end = self._branch(keyword)
                last.otherwise, last.is_chained = List(end.position, [chained]), True
                last, end = chained, next_end
                continue
            last.otherwise, end = self._list()
            if not isinstance(end, End):
                raise self._failure(f"expected end; found {end}")
        self._scopes.pop()
        return first

    def _branch(self, keyword: str) -> tuple[Branch, Node]:
        pipe = self._pipeline(keyword, Word.RIGHT_DELIMITER)
        self._ranges += keyword == "range"
        body, end = self._list()
        self._ranges -= keyword == "range"
        return Branch(pipe.position, keyword, pipe, body), end

    def _block(self) -> Invocation:
        context = "block clause"
        item = self._expect(context, Word.STRING, Word.RAW_STRING)
        name = self._unquoted(item)
        pipe = self._pipeline(context, Word.RIGHT_DELIMITER)
        block = _Parser(name, self._source, self._lexer, self._trees, self._depth)
        tree, end = block._list()
        if not isinstance(end, End):
            raise self._failure(f"unexpected {end} in {context}")
        block._add(tree)
        return Invocation(item.position, name, pipe)

    def _template(self) -> Invocation:
        context = "template clause"
        item = self._expect(context, Word.STRING, Word.RAW_STRING)
        name = self._unquoted(item)
        following = self._next_word()
        if following.word is Word.RIGHT_DELIMITER:
            return Invocation(item.position, name, None)
        self._put_back(following)
        return Invocation(item.position, name, self._pipeline(context, Word.RIGHT_DELIMITER))

    # Pipelines.

    def _pipeline(self, context: str, end: Word) -> Pipe:
        pipe = Pipe(self._peek_word().position)
        while self._declaration(pipe, context):
            pass
        while True:
            item = self._next_word()
            if item.word is end:
                self._check(pipe, context)
                return pipe
            if item.word not in _OPERANDS:
                raise self._unexpected(item, context)
            self._put_back(item)
            pipe.commands.append(self._command())

    def _declaration(self, pipe: Pipe, context: str) -> bool:
        """Reads ``$x :=``, ``$x =`` or ``$x,``, if it is there; whether another variable may follow."""
        if self._peek_word().word is not Word.VARIABLE:
            return False
        variable = self._next()
        after = self._next()
        following = self._next_word() if after.word is Word.SPACE else after
        is_comma = following.word is Word.CHARACTER and following.text == ","
        if following.word not in (Word.ASSIGN, Word.DECLARE) and not is_comma:
            self._put_back(*((variable, after, following) if after.word is Word.SPACE else (variable, after)))
            return False
        pipe.declared.append(Variable(variable.position, [variable.text]))
        self._scopes[-1].add(variable.text)
        if not is_comma:
            pipe.is_assignment = following.word is Word.ASSIGN
            return False
        if context != "range" or len(pipe.declared) >= 2:
            raise self._failure(f"too many declarations in {context}")
        if self._peek_word().word not in (Word.VARIABLE, Word.RIGHT_DELIMITER, Word.RIGHT_PARENTHESIS):
            raise self._failure("range can only initialize variables")
        return True

    def _check(self, pipe: Pipe, context: str) -> None:
        if not pipe.commands:
            raise self._failure(f"missing value for {context}")
        for stage, command in enumerate(pipe.commands[1:], start=2):
            if isinstance(command.args[0], (Bool, Dot, Nil, Number, String)):
                raise self._failure(f"non executable command in pipeline stage {stage}")

    def _command(self) -> Command:
        command = Command(self._peek_word().position)
        while True:
            self._peek_word()
            operand = self._operand()
            if operand is not None:
                command.args.append(operand)
            item = self._next()
            if item.word is Word.SPACE:
                continue
            if item.word in (Word.RIGHT_DELIMITER, Word.RIGHT_PARENTHESIS):
                self._put_back(item)
            elif item.word is not Word.PIPE:
                raise self._unexpected(item, "operand")
            break
        if not command.args:
            raise self._failure("empty command")
        return command

    def _operand(self) -> Node | None:
        node = self._term()
        if node is None or self._peek().word is not Word.FIELD:
            return node
        position, names = self._peek().position, []
        while self._peek().word is Word.FIELD:
            names.append(self._next().text[1:])
        # Go takes the place of the second name for that of the whole.
        if isinstance(node, Field):
            return Field(position, node.names + names)
        if isinstance(node, Variable):
            return Variable(position, node.names + names)
        if isinstance(node, (Bool, String, Number, Nil, Dot)):
            raise self._failure(f"unexpected . after term {quote(str(node))}")
        return Chain(position, node, names)

    def _term(self) -> Node | None:
        item = self._next_word()
        if item.word is Word.LEFT_PARENTHESIS:
            self._enter()
            pipe = self._pipeline("parenthesized pipeline", Word.RIGHT_PARENTHESIS)
            self._depth -= 1
            return pipe
        if item.word is Word.IDENTIFIER and item.text not in FUNCTIONS:
            raise self._failure(f"function {quote(item.text)} not defined")
        if item.word is Word.VARIABLE and not any(item.text in scope for scope in self._scopes):
            raise self._failure(f"undefined variable {quote(item.text)}")
        node = self._literal(item)
        if node is None:
            self._put_back(item)
        return node

    def _literal(self, item: Item) -> Node | None:
        word, position, text, _ = item
        if word is Word.IDENTIFIER:
            return Identifier(position, text)
        if word is Word.DOT:
            return Dot(position)
        if word is Word.NIL:
            return Nil(position)
        if word is Word.VARIABLE:
            return Variable(position, [text])
        if word is Word.FIELD:
            return Field(position, [text[1:]])
        if word is Word.BOOL:
            return Bool(position, text == "true")
        if word in (Word.STRING, Word.RAW_STRING):
            return String(position, text, self._unquoted(item))
        if word in (Word.CHARACTER_CONSTANT, Word.COMPLEX, Word.NUMBER):
            return Number(position, text, self._number(item))
        return None

    def _number(self, item: Item) -> int | float | complex | None:
        read = {Word.CHARACTER_CONSTANT: numbers.character, Word.COMPLEX: numbers.complex_number, Word.NUMBER: numbers.number}[item.word]
        try:
            return read(item.text)
        except ValueError as error:
            raise self._failure(str(error)) from None

    def _unquoted(self, item: Item) -> str:
        try:
            return unquote(item.text)
        except ValueError as error:
            raise self._failure(str(error)) from None
