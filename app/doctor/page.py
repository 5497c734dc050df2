"""An examination as one HTML file that needs nothing beside it."""

from collections.abc import Sequence
from html import escape

from app.desk.health import SUMMARY, Diagnosis, Level, worst

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #17713a; --warn: #8a5a00; --error: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ok: #6fce8f; --warn: #e6b450; --error: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0; border-top: 1px solid var(--line); }
.ok { color: var(--ok); } .warn { color: var(--warn); } .error { color: var(--error); }
td p { margin: 0 0 .25rem; }
"""


def html_page(home: str, found: Sequence[Diagnosis], when: str) -> str:
    """Returns the page of what was examined, a folder or a server's address; everything from outside is escaped."""
    rows = "".join(
        f"<tr><th scope=row>{escape(one.check)}</th><td class={one.level}>{one.level}</td>"
        f"<td><p>{escape(one.sentence)}</p>{f'<p>{escape(one.advice)}</p>' if one.advice else ''}</td></tr>"
        for one in sorted(found, key=lambda one: -list(Level).index(one.level))
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Examination of {escape(home)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{SUMMARY[worst(found)]}</h1><p>{escape(home)}, {escape(when)} UTC.</p>"
        "<table><thead><tr><th scope=col>looked at</th><th scope=col>level</th><th scope=col>found</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></main></body></html>\n"
    )
