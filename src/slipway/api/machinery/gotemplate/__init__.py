"""Templates in the language of Go 1.26's text/template, for the files that users write for their nodes.

Data is what JSON holds: dict, list, str, int, float, bool and None stand for Go's map[string]any, []any, string, int64, float64, bool
and nil, as Kubernetes' own decoder makes them.  Whole numbers that the template itself writes are Go's int.  Texts of errors are Go's.

Where this differs from Go, it is because a template comes from a stranger and runs in a shared program: nesting, work, and the length of
text, literals and messages are limited (see limits.py); there are no pointers to print, so ``%p`` of a map is refused as for any other
value; the capacity of a list is its length; which characters are printable is for Python's Unicode tables to say, which may be a year
older or newer.
"""

from slipway.api.machinery.gotemplate.errors import TemplateError
from slipway.api.machinery.gotemplate.template import Template

__all__ = ["Template", "TemplateError"]
