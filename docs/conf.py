"""Settings of the documentation site; `make docs` builds it."""

import sys
from pathlib import Path

import regcal

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "regcal"
author = "The regcal developers"
copyright = "The regcal developers"  # noqa: A001
version = release = regcal.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "Thumbs.db"]
templates_path = ["_templates"]

# Pages that other parts of the project may bring: their places in the contents may be empty.
suppress_warnings = ["toc.empty_glob", "config.cache"]

# Markdown

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# API reference

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
default_role = "autolink"

# gallery

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "doc_module": ("regcal",),
    "backreferences_dir": None,
    "reset_modules": ("matplotlib",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
}

# HTML

html_theme = "pydata_sphinx_theme"
html_title = "regcal"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["regcal.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "regcal"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 2,
}
html_sidebars = {"index": [], "tutorial": []}

# references

nitpicky = True
# Base classes that are not ours to document.
nitpick_ignore_regex = [("py:class", r"(abc|numpy|sklearn|builtins|regcal\..*\._|regcal\._).*")]


def write_example_report(app, error):
    """Put a live report into the site, for the page that explains it."""
    if error is None and app.builder.format == "html":
        from regcal.demo import run_demo

        run_demo(app.outdir)
        (app.outdir / "report.html").replace(app.outdir / "_static" / "example_report.html")


def setup(app):
    """Connect the report to the end of the build."""
    app.connect("build-finished", write_example_report)
