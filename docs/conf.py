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

suppress_warnings = ["config.cache"]

# Markdown

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# API reference

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
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
    "capture_repr": (),  # what is printed is shown, and figures; not the names of their parts
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
    "logo": {"text": f"regcal {release}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "coming_from": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "tutorial", "theory", "coming_from")}

# references

nitpicky = True
nitpick_ignore_regex = [
    # base classes that users do not meet
    ("py:class", r"(abc|numpy|sklearn|builtins|regcal\..*\._|regcal\._).*"),
    (
        "py:class",
        r"regcal\..*\.(BinaryMap|(Process|Probit)Calibrator|(Probit|Sided)Distribution|Primitives|Bounded)",
    ),
    ("py:class", r"regcal\.tables\..*(Outcome|Prediction)Columns"),
    # names in docstrings that are no pages here: of other packages, of parameters, of modules
    ("py:obj", r"(sklearn|scipy)\..*|FULL|QUICK"),
    ("py:obj", r"regcal\.(grids|maps|metrics|maps\.Axis|ends\.find_ends)"),
    ("py:obj", r"cdf|pdf|logpdf|flat|_fit|_transform"),
    ("py:obj", r"code|costs|guarantee|random_state|support|time"),
]

# Pages that other parts of the project bring.
OPTIONAL_PAGES = ("large_data", "skpro")


def leave_out_missing_pages(app, name, source):
    """Take optional pages that do not exist out of the user guide's contents."""
    if name == "guide":
        missing = {page for page in OPTIONAL_PAGES if page not in app.env.found_docs}
        lines = [line for line in source[0].splitlines() if line not in missing]
        source[0] = "\n".join(lines)


def write_example_report(app, error):
    """Put a live report into the site, for the page that explains it."""
    if error is None and app.builder.format == "html":
        from regcal.demo import run_demo

        folder = Path(app.outdir, "_static", "example")
        run_demo(folder)


def setup(app):
    """Connect what is above to the build."""
    app.connect("source-read", leave_out_missing_pages)
    app.connect("build-finished", write_example_report)
