"""How Sphinx makes the site of README, docs/ and notebooks/; `scripts/site` runs it.

The pages stay what they are, plain Markdown that is read on GitHub too: what only a site needs is
in this folder. Sphinx's source directory is the project's root, so that links between pages are the
same in both places.
"""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# The numbers of the notebooks are their order. A test finds the page of docs/ that is missing here.
NAVIGATION = {
    "Learn MERGE": [
        "docs/README",
        *[f"notebooks/{path.stem}" for path in sorted(ROOT.glob("notebooks/*.ipynb"))],
        "docs/words",
        "docs/gallery",
        "docs/explorer",
        "docs/what-if",
        "docs/why",
        "docs/near",
        "docs/duplicates",
        "docs/teaching",
    ],
    "Use it": [
        "docs/install",
        "docs/use",
        "docs/from-postgresql",
        "docs/from-sqlserver-oracle",
        "docs/dialect",
        "docs/versions",
        "docs/queries",
        "docs/security",
    ],
    "Explore a design": [
        "docs/design",
        "docs/lab",
        "docs/compare",
        "docs/flows",
        "docs/speed",
    ],
    "Build and debug a connector": [
        "docs/own-connector",
        "docs/contract-kit",
        "docs/trino-connectors",
        "docs/trino-plugin-debugging",
        "docs/trino-plugin-reference",
        "docs/debugging",
        "docs/check",
        "docs/faults",
        "docs/interleaving",
        "docs/replay",
        "docs/observers",
        "docs/audit",
        "docs/trino-query",
    ],
    "Stores": [
        "docs/stores",
        "docs/stores-memory",
        "docs/stores-hive",
        "docs/stores-hive-files",
        "docs/stores-iceberg",
        "docs/stores-iceberg-upkeep",
        "docs/stores-iceberg-guarantees",
        "docs/stores-delta",
        "docs/stores-databases",
        "docs/stores-databases-reference",
        "docs/stores-statements",
        "docs/stores-columns",
        "docs/stores-leftovers",
    ],
    "Clusters": [
        "docs/clusters",
    ],
    "Reference": [
        "docs/options",
        "docs/functions",
        "docs/page-expressions",
        "docs/types",
        "docs/errors",
        "docs/connector-reference",
        "docs/trino-differences",
        "docs/gaps",
        "site/api",
        "site/spi",
        "site/testing",
    ],
    "Project": [
        "CONTRIBUTING",
        "CHANGELOG",
        "SECURITY",
        *[f"docs/decisions/{path.stem}" for path in sorted(ROOT.glob("docs/decisions/*.md"))],
    ],
}

# -- what is read

project = "rowmerge_nb"
root_doc = "README"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
_PARTS = {
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs",
    "notebooks",
    "site",
}
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.name not in _PARTS),
    "site/static",
    "site/*.py",
    "**/.ipynb_checkpoints",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}

# Markdown as GitHub has it, and nothing more: dollars in text are dollars.
myst_enable_extensions: list[str] = []
myst_heading_anchors = 4
# Outputs are shown as they were saved. Widgets would need scripts from elsewhere, so what is shown
# is the report that each of them leaves beside itself.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, Any] = {}
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
nb_merge_streams = True

# -- the reference

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

# -- what is made

highlight_language = "none"
pygments_dark_style = "github-dark"
smartquotes_action = "D"  # no quotes are changed, but the dashes of the reference are dashes
html_theme = "furo"
html_title = "rowmerge_nb"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = "site/scorer.js"
html_extra_path = ["static/index.html"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

# What would make a browser ask somebody else; links that a reader follows do not.
_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source|embed|object|link)\b[^>]*?\b(?:src|href|data)=["']?(?:https?:)?//[^>]*>"""
    r"""|@import[^;]*;|url\(["']?(?:https?:)?//[^)]*\)""",
    re.IGNORECASE,
)

_EXPLORER = """\
<div class="explorer">
<iframe src="gallery/{example.anchor}.html" title="The explorer: {example.title}" loading="lazy"></iframe>
<p><a href="gallery/{example.anchor}.html">Open the explorer alone</a></p>
</div>"""


def setup(app: Any) -> None:
    """Have the front page carry the navigation, and the site looked through when it is made."""
    app.connect("source-read", _add_navigation)
    app.connect("source-read", _add_explorers)
    app.connect("doctree-read", _name_remote_images)
    app.connect("build-finished", _copy_pictures)
    app.connect("build-finished", _copy_explorers)
    app.connect("build-finished", _ask_nobody)


def _add_navigation(app: Any, page: str, source: list[str]) -> None:
    if page == root_doc:
        for caption, group in NAVIGATION.items():
            source[0] += "\n".join(
                ["", "", "```{toctree}", ":hidden:", f":caption: {caption}", "", *group, "```", ""]
            )


def _name_remote_images(app: Any, page: Any) -> None:
    """Put its words in the place of a picture that lies elsewhere, such as the badge of a fork's
    README.
    """
    from docutils import nodes

    for image in list(page.findall(nodes.image)):
        if "//" in image["uri"]:
            image.replace_self(nodes.inline("", image.get("alt", image["uri"])))


def _copy_pictures(app: Any, error: Exception | None) -> None:
    """Copy the pictures of the README, whose element ``picture`` Sphinx does not follow."""
    shutil.copytree(
        ROOT / "docs" / "pictures", Path(app.outdir) / "docs" / "pictures", dirs_exist_ok=True
    )


def _add_explorers(app: Any, page: str, source: list[str]) -> None:
    """Embed the explorer of a section's statement at the end of each section of the gallery."""
    if page == "docs/gallery":
        head, *sections = re.split(r"^(?=## )", source[0], flags=re.MULTILINE)
        examples = runpy.run_path(str(ROOT / "site" / "gallery.py"))["read_examples"](source[0])
        source[0] = head + "".join(
            f"{section.rstrip()}\n\n{_EXPLORER.format(example=example)}\n\n"
            for section, example in zip(sections, examples, strict=True)
        )


def _copy_explorers(app: Any, error: Exception | None) -> None:
    """Copy the explorers of the gallery, which `scripts/site` has written before."""
    shutil.copytree(
        ROOT / "build" / "gallery", Path(app.outdir) / "docs" / "gallery", dirs_exist_ok=True
    )


def _ask_nobody(app: Any, error: Exception | None) -> None:
    from sphinx.util.logging import getLogger

    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in {".html", ".css"}:
            for found in _ELSEWHERE.findall(path.read_text(encoding="utf-8")):
                getLogger(__name__).warning(
                    "%s would load what the site does not bring along: %s", path, found
                )
