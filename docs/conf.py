"""Configuration of the documentation."""

project = "encoder-zoo"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
exclude_patterns = ["_build"]
